//! A hand model fitted to observed points: residuals and their Jacobian. In the simple problem each point belongs to a
//! vertex; in the complicated one to a triangle, with unknown coordinates on it.

use crate::{ReadError, Words, text};
use chainrule::{Compiled, Error, Function, Module, Value};
use std::path::Path;

/// The F~ program.
pub const SOURCE: &str = include_str!("../programs/hand.ft");

/// Rows of a transform: three of four numbers.
type Transform = Vec<Vec<f64>>;

/// Maximum number of bones of a vertex.
const DRAWN: usize = 4;

/// A hand at rest.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Transform of each bone relative to its parent: the wrist, four for each finger, the forearm.
    pub relative: Vec<Transform>,
    /// Transform of each bone from its rest position back to its origin.
    pub rest: Vec<Transform>,
    /// 3 numbers for each vertex.
    pub vertices: Vec<Vec<f64>>,
    /// 4 bones for each vertex; missing ones have the weight 0.
    pub bones: Vec<Vec<i64>>,
    /// Weights of the bones.
    pub weights: Vec<Vec<f64>>,
    /// Corners of the triangles, counter-clockwise.
    pub triangles: Vec<Vec<i64>>,
}

/// A hand, the observations, and the initial parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// The hand at rest.
    pub model: Model,
    /// Three numbers that rotate the hand, three that translate it, and four angles for each finger.
    pub theta: Vec<f64>,
    /// Coordinates of each observed point.
    pub seen: Vec<Vec<f64>>,
    /// Vertex of each point; in the complicated problem, its triangle.
    pub at: Vec<i64>,
    /// Two coordinates of each point on its triangle, in the complicated problem.
    pub coordinates: Option<Vec<Vec<f64>>>,
}

/// Returns the parent of a bone, as in the program.
fn parent(bone: usize) -> i64 {
    match bone {
        0 => -1,
        b if (b - 1).is_multiple_of(4) => 0,
        b => b as i64 - 1,
    }
}

fn transform(words: &mut Words<'_>) -> Result<Transform, ReadError> {
    let mut rows = words.rows(4, 4)?;
    // The last row of a homogeneous transform is 0, 0, 0, 1.
    rows.truncate(3);
    Ok(rows)
}

/// Returns the model in the folder `path`.
///
/// # Errors
/// Fails if a file cannot be read, or is not ADBench's.
pub fn read_model(path: &Path) -> Result<Model, ReadError> {
    let (mut relative, mut rest) = (Vec::new(), Vec::new());
    let file = path.join("bones.txt");
    for (bone, line) in text(&file)?.lines().enumerate() {
        let fields = line.replace(':', " ");
        let mut words = Words::new(&file, &fields);
        let name = words.word()?.to_owned();
        if words.integer()? != parent(bone) {
            return Err(format!("{}: the bone `{name}` is fixed to another one than expected", file.display()).into());
        }
        relative.push(transform(&mut words)?);
        rest.push(transform(&mut words)?);
    }
    let (mut vertices, mut bones, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    let file = path.join("vertices.txt");
    for line in text(&file)?.lines() {
        let fields = line.replace(':', " ");
        let mut words = Words::new(&file, &fields);
        vertices.push(words.numbers(3)?);
        // Normal and texture coordinates.
        words.numbers(5)?;
        let n = words.size()?;
        if n > DRAWN {
            return Err(format!("{}: more than {DRAWN} bones draw a vertex", file.display()).into());
        }
        let (mut drawn_by, mut by) = (vec![0; DRAWN], vec![0.0; DRAWN]);
        for j in 0..n {
            (drawn_by[j], by[j]) = (words.integer()?, words.numbers(1)?[0]);
        }
        bones.push(drawn_by);
        weights.push(by);
    }
    let file = path.join("triangles.txt");
    let corners = |line: &str| Words::new(&file, &line.replace(':', " ")).integers(3);
    let triangles = text(&file)?.lines().map(corners).collect::<Result<_, _>>()?;
    Ok(Model { relative, rest, vertices, bones, weights, triangles })
}

/// Returns the problem in the file `path`, simple or complicated, of the model in the folder `model` next to it.
///
/// # Errors
/// Fails if a file cannot be read, or is not ADBench's.
pub fn read(path: &Path) -> Result<Problem, ReadError> {
    let model = read_model(&path.with_file_name("model"))?;
    let text = text(path)?;
    let mut words = Words::new(path, &text);
    let (n, parameters) = (words.size()?, words.size()?);
    let (mut seen, mut at) = (Vec::new(), Vec::new());
    for _ in 0..n {
        at.push(words.integer()?);
        seen.push(words.numbers(3)?);
    }
    let complicated = words.left() > parameters;
    let coordinates = if complicated { Some(words.rows(n, 2)?) } else { None };
    Ok(Problem { model, theta: words.numbers(parameters)?, seen, at, coordinates })
}

impl Problem {
    /// Returns the arguments of `hand` and `handJacobian`; for a complicated problem, of `handOnTriangles` and
    /// `handOnTrianglesJacobian`.
    #[must_use]
    pub fn args(&self) -> Vec<Value<f64>> {
        let model = &self.model;
        let mut args: Vec<Value<f64>> = self.coordinates.iter().map(|u| u.clone().into()).collect();
        args.extend([
            self.theta.clone().into(),
            model.relative.clone().into(),
            model.rest.clone().into(),
            model.vertices.clone().into(),
            model.bones.clone().into(),
            model.weights.clone().into(),
        ]);
        if self.coordinates.is_some() {
            args.push(model.triangles.clone().into());
        }
        args.push(self.seen.clone().into());
        args.push(self.at.clone().into());
        args
    }

    /// Returns the columns of the Jacobian, three numbers for each point, from the numbers of the program's result. A
    /// complicated problem has two columns for the points' own coordinates before those of the parameters.
    #[must_use]
    pub fn columns(&self, jacobian: &[f64]) -> Vec<Vec<f64>> {
        let n = self.seen.len();
        // Numbers of each part for a point.
        let parts: &[usize] = if self.coordinates.is_some() { &[2, 3, 3, 20] } else { &[3, 3, 20] };
        let (mut columns, mut start) = (Vec::new(), 0);
        for width in parts {
            let column = |k: usize| (0..n).flat_map(move |i| &jacobian[start + 3 * (width * i + k)..][..3]).copied();
            columns.extend((0..*width).map(|k| column(k).collect()));
            start += 3 * n * width;
        }
        columns
    }
}

/// Returns the functions of the program for simple or complicated problems: the residuals and their Jacobian, in parts.
///
/// # Errors
/// Never: the program is valid.
pub fn functions(complicated: bool) -> Result<(Function, Function), Error> {
    let module = Module::from_text("hand.ft", SOURCE)?;
    let (value, jacobian) =
        if complicated { ("handOnTriangles", "handOnTrianglesJacobian") } else { ("hand", "handJacobian") };
    Ok((module.function(value)?, module.function(jacobian)?))
}

/// Compiles the residuals and their Jacobian, as returned by [`functions`].
///
/// # Errors
/// Never: the program is valid.
pub fn compile(complicated: bool) -> Result<(Compiled, Compiled), Error> {
    let (value, jacobian) = functions(complicated)?;
    Ok((value.compile()?, jacobian.compile()?))
}
