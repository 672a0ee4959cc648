//! Memory of a running program: its arguments and the workspace.

use crate::lanes::LaneSpace;
use crate::{Program, Sizes};
use chainrule_runtime::{Part, Slice, SliceMut, Strided};

/// Memory of one running program: slots and temporary buffers. Make one for each thread, and reuse it.
#[derive(Clone, Debug)]
pub struct Workspace {
    pub(crate) real_slots: Vec<f64>,
    pub(crate) int_slots: Vec<i64>,
    pub(crate) reals: Vec<f64>,
    pub(crate) ints: Vec<i64>,
    /// Arguments of the current call of a user function.
    pub(crate) call: Vec<f64>,
    pub(crate) lanes: Option<Box<LaneSpace>>,
    pub(crate) poison: bool,
}

impl Workspace {
    /// Returns a workspace for single points of these sizes, and for batches one point at a time.
    #[must_use]
    pub fn new(program: &Program, sizes: &Sizes) -> Self {
        let (reals, ints) = sizes.workspace_len();
        Self {
            real_slots: vec![0.0; program.compiled.n_reals],
            int_slots: vec![0; program.compiled.n_ints],
            reals: vec![0.0; reals],
            ints: vec![0; ints],
            call: vec![0.0; program.max_arity],
            lanes: None,
            poison: false,
        }
    }

    /// Returns a workspace for batches as well, a block of [`LANES`](crate::LANES) points at a time if the program
    /// allows it.
    #[must_use]
    pub fn for_batch(program: &Program, sizes: &Sizes) -> Self {
        let mut workspace = Self::new(program, sizes);
        if program.runs_in_lanes(sizes) {
            workspace.lanes = Some(Box::new(LaneSpace::new(program, sizes)));
        }
        workspace
    }

    /// For tests: fills all memory, and the outputs of a single point, with NaN and an absurd integer before each run,
    /// so that reads of unwritten memory become visible.
    #[must_use]
    pub fn poisoned(mut self) -> Self {
        self.poison = true;
        self
    }

    pub(crate) fn fill_with_poison(&mut self) {
        self.real_slots.fill(f64::NAN);
        self.int_slots.fill(POISON);
        self.reals.fill(f64::NAN);
        self.ints.fill(POISON);
        if let Some(lanes) = &mut self.lanes {
            lanes.fill_with_poison();
        }
    }
}

/// Poison value of integers: an index that fails every check.
pub(crate) const POISON: i64 = i64::MIN / 3;

/// Arguments of the running point. Elements are within the buffers' lengths; accesses return `None` if the class is
/// wrong or the element does not exist.
pub(crate) trait Arguments {
    fn real(&self, input: usize, at: usize) -> Option<f64>;
    fn int(&self, input: usize, at: usize) -> Option<i64>;
    fn output_real(&self, output: usize, at: usize) -> Option<f64>;
    fn output_int(&self, output: usize, at: usize) -> Option<i64>;
    fn set_real(&mut self, output: usize, at: usize, value: f64) -> Option<()>;
    fn set_int(&mut self, output: usize, at: usize, value: i64) -> Option<()>;
}

/// The arguments of a single point.
pub(crate) struct Single<'a, 'b, 'c> {
    pub inputs: &'a [Slice<'b>],
    pub outputs: &'a mut [SliceMut<'c>],
}

impl Arguments for Single<'_, '_, '_> {
    fn real(&self, input: usize, at: usize) -> Option<f64> {
        if let Some(Slice::Real(data)) = self.inputs.get(input) { data.get(at).copied() } else { None }
    }

    fn int(&self, input: usize, at: usize) -> Option<i64> {
        if let Some(Slice::Int(data)) = self.inputs.get(input) { data.get(at).copied() } else { None }
    }

    fn output_real(&self, output: usize, at: usize) -> Option<f64> {
        if let Some(SliceMut::Real(data)) = self.outputs.get(output) { data.get(at).copied() } else { None }
    }

    fn output_int(&self, output: usize, at: usize) -> Option<i64> {
        if let Some(SliceMut::Int(data)) = self.outputs.get(output) { data.get(at).copied() } else { None }
    }

    fn set_real(&mut self, output: usize, at: usize, value: f64) -> Option<()> {
        let Some(SliceMut::Real(data)) = self.outputs.get_mut(output) else { return None };
        data.get_mut(at).map(|place| *place = value)
    }

    fn set_int(&mut self, output: usize, at: usize, value: i64) -> Option<()> {
        let Some(SliceMut::Int(data)) = self.outputs.get_mut(output) else { return None };
        data.get_mut(at).map(|place| *place = value)
    }
}

/// The arguments of point `point` of a batch.
pub(crate) struct Many<'a, 'b, 'c> {
    pub inputs: &'a [Strided<'b>],
    pub outputs: &'a mut [Part<'c>],
    pub point: usize,
}

impl Arguments for Many<'_, '_, '_> {
    fn real(&self, input: usize, at: usize) -> Option<f64> {
        let input = self.inputs.get(input)?;
        let Slice::Real(data) = input.data else { return None };
        data.get(self.point * input.point + at * input.element).copied()
    }

    fn int(&self, input: usize, at: usize) -> Option<i64> {
        let input = self.inputs.get(input)?;
        let Slice::Int(data) = input.data else { return None };
        data.get(self.point * input.point + at * input.element).copied()
    }

    fn output_real(&self, output: usize, at: usize) -> Option<f64> {
        let mut value = [0.0];
        self.outputs.get(output)?.read_doubles(self.point, at, &mut value)?;
        Some(value[0])
    }

    fn output_int(&self, output: usize, at: usize) -> Option<i64> {
        let mut value = [0];
        self.outputs.get(output)?.read_integers(self.point, at, &mut value)?;
        Some(value[0])
    }

    fn set_real(&mut self, output: usize, at: usize, value: f64) -> Option<()> {
        self.outputs.get_mut(output)?.write_doubles(self.point, at, &[value])
    }

    fn set_int(&mut self, output: usize, at: usize, value: i64) -> Option<()> {
        self.outputs.get_mut(output)?.write_integers(self.point, at, &[value])
    }
}
