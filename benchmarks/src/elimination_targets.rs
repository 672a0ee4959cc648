//! Reference counts of the benchmark graphs for elimination: multiplications.
//!
//! Sources: AlphaGrad (Lohoff and Neftci, "Optimizing Automatic Differentiation with Deep Reinforcement
//! Learning", NeurIPS 2024), whose example functions the graphs were traced from; its best orders run on them; the
//! best vertex orders of 50 s of simulated annealing in November 2026. `lit_*`: the optima of Naumann,
//! "Efficient calculation of Jacobian matrices by optimized application of the chain rule to computational graphs",
//! 1999, and Guenter's figure 19 of 2007; two of these graphs are reconstructed.

/// Reference counts of one graph.
#[derive(Clone, Copy, Default, Debug)]
pub struct Known {
    /// AlphaGrad's best order, every product counted.
    pub alphagrad: Option<u64>,
    /// The best known vertex order, every product counted.
    pub vertex: Option<u64>,
    /// The best known edge elimination, every product counted.
    pub edge: Option<u64>,
    /// The best known face elimination, every product counted.
    pub face: Option<u64>,
    /// AlphaGrad's order, products by 1 and -1 free.
    pub alphagrad_unit_free: Option<u64>,
    /// The best known order, products by 1 and -1 free.
    pub unit_free: Option<u64>,
}

impl Known {
    /// Returns the best known count of vertex orders.
    pub fn vertex_best(&self, unit_free: bool) -> Option<u64> {
        if unit_free { self.best(true) } else { [self.alphagrad, self.vertex].into_iter().flatten().min() }
    }

    /// Returns the best known count.
    pub fn best(&self, unit_free: bool) -> Option<u64> {
        if unit_free {
            [self.alphagrad_unit_free, self.unit_free].into_iter().flatten().min()
        } else {
            [self.alphagrad, self.vertex, self.edge, self.face].into_iter().flatten().min()
        }
    }
}

/// A row: graph, AlphaGrad, vertex, edge, face; unit-free AlphaGrad, best. 0 means unknown.
type Row = (&'static str, [u64; 4], [u64; 2]);

#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("RoeFlux_1d", [320, 295, 0, 0], [217, 216]),
    ("RobotArm_6DOF", [231, 221, 0, 0], [165, 157]),
    ("HumanHeartDipole", [148, 148, 0, 0], [48, 48]),
    ("PropaneCombustion", [88, 88, 0, 0], [24, 24]),
    ("g", [416, 409, 0, 0], [302, 302]),
    ("BlackScholes_Jacobian", [307, 297, 0, 0], [0, 0]),
    ("RoeFlux_3d", [0, 606, 0, 0], [0, 0]),
    ("lion4", [0, 12, 11, 11], [0, 0]),
    ("guenterD_lion5", [0, 14, 13, 13], [0, 0]),
    ("guenterC_reconstructed", [0, 8, 8, 8], [0, 0]),
    ("bat_reconstructed", [0, 24, 23, 22], [0, 0]),
];

/// Returns the reference counts of the graph of this name.
pub fn known(graph: &str) -> Known {
    let Some((_, [alphagrad, vertex, edge, face], [alphagrad_unit_free, unit_free])) =
        ROWS.iter().find(|row| row.0 == graph)
    else {
        return Known::default();
    };
    let known = |n: &u64| (*n > 0).then_some(*n);
    Known {
        alphagrad: known(alphagrad),
        vertex: known(vertex),
        edge: known(edge),
        face: known(face),
        alphagrad_unit_free: known(alphagrad_unit_free),
        unit_free: known(unit_free),
    }
}
