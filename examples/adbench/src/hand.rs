//! A model of a hand, fitted to points seen on one: residuals and their Jacobian. In the simple problem the points are of
//! vertices, in the complicated one they are of triangles, and where on them is looked for too.

use crate::{ReadError, Words, text};
use chainrule::{Compiled, Error, Function, Module, Value};
use std::path::Path;

/// The F~ program.
pub const SOURCE: &str = include_str!("../programs/hand.ft");

/// Rows of a transform: three of four numbers.
type Transform = Vec<Vec<f64>>;

/// How many bones draw a vertex at most.
const DRAWN: usize = 4;

/// A hand at rest.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Where each bone is, relative to the one before it: the wrist, four for each finger, the forearm.
    pub relative: Vec<Transform>,
    /// From where each bone is at rest back to where it starts.
    pub rest: Vec<Transform>,
    /// 3 numbers each.
    pub vertices: Vec<Vec<f64>>,
    /// Bones that draw each vertex, 4 of them; where there are fewer, the last have the weight 0.
    pub bones: Vec<Vec<i64>>,
    /// By how much.
    pub weights: Vec<Vec<f64>>,
    /// The corners of the triangles, counter-clockwise.
    pub triangles: Vec<Vec<i64>>,
}

/// A hand, what was seen of it, and where to start.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// The hand at rest.
    pub model: Model,
    /// Three numbers that turn the hand, three that move it, and four angles for each finger.
    pub theta: Vec<f64>,
    /// Where each point was seen.
    pub seen: Vec<Vec<f64>>,
    /// The vertex of each point; in the complicated problem, its triangle.
    pub at: Vec<i64>,
    /// In the complicated problem, two coordinates of each point on its triangle.
    pub coordinates: Option<Vec<Vec<f64>>>,
}

/// Which bone each is fixed to, as the program has them.
fn parent(bone: usize) -> i64 {
    match bone {
        0 => -1,
        b if (b - 1).is_multiple_of(4) => 0,
        b => b as i64 - 1,
    }
}

fn transform(words: &mut Words<'_>) -> Result<Transform, ReadError> {
    let mut rows = words.rows(4, 4)?;
    // Of a transform of homogeneous coordinates: 0, 0, 0, 1.
    rows.truncate(3);
    Ok(rows)
}

/// The model in the folder `path`.
///
/// # Errors
/// When a file cannot be read, or is not ADBench's.
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
        // Its normal and its place in a texture.
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

/// The problem in the file `path`, simple or complicated, of the model in the folder `model` beside it.
///
/// # Errors
/// When a file cannot be read, or is not ADBench's.
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
    /// The arguments of `hand` and `handJacobian`; of a complicated problem, of `handOnTriangles` and
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

    /// The columns of the Jacobian, three numbers for each point, from the numbers of the program's result; a complicated
    /// problem has two for the points' own coordinates before those of the parameters.
    #[must_use]
    pub fn columns(&self, jacobian: &[f64]) -> Vec<Vec<f64>> {
        let n = self.seen.len();
        // What each part has for a point.
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

/// The functions of the program for simple or complicated problems: the residuals and their Jacobian, in parts.
///
/// # Errors
/// Never: the program is right.
pub fn functions(complicated: bool) -> Result<(Function, Function), Error> {
    let module = Module::from_text("hand.ft", SOURCE)?;
    let (value, jacobian) =
        if complicated { ("handOnTriangles", "handOnTrianglesJacobian") } else { ("hand", "handJacobian") };
    Ok((module.function(value)?, module.function(jacobian)?))
}

/// The residuals and their Jacobian, as [`functions`] has them, compiled.
///
/// # Errors
/// Never: the program is right.
pub fn compile(complicated: bool) -> Result<(Compiled, Compiled), Error> {
    let (value, jacobian) = functions(complicated)?;
    Ok((value.compile()?, jacobian.compile()?))
}
