//! Problems in the format of Ceres' `libmv_bundle_adjuster`.
//!
//! | bytes | content |
//! | --- | --- |
//! | `v` or `V` | little- or big-endian |
//! | 1 | `P`: marks are in pixels |
//! | 8 floats | focal length, principal point, radial (3) and tangential (2) distortion |
//! | int, then for each camera: int, 9 floats, 3 floats | picture, rotation matrix column by column, translation |
//! | int, then for each point: int, 3 floats | track, position |
//! | int, then for each mark: int, int, 2 floats | picture, track, image coordinates |

use crate::Problem;
use std::collections::BTreeMap;

/// Error of reading a file.
pub type ReadError = Box<dyn std::error::Error>;

struct Bytes<'b> {
    rest: &'b [u8],
    is_little: bool,
}

impl Bytes<'_> {
    fn four(&mut self) -> Result<[u8; 4], ReadError> {
        let (head, rest) = self.rest.split_first_chunk::<4>().ok_or("the file ends too early")?;
        self.rest = rest;
        let mut bytes = *head;
        if !self.is_little {
            bytes.reverse();
        }
        Ok(bytes)
    }

    fn int(&mut self) -> Result<i32, ReadError> {
        Ok(i32::from_le_bytes(self.four()?))
    }

    /// Returns the number of items of at least `bytes` bytes that follow.
    fn count(&mut self, bytes: usize) -> Result<usize, ReadError> {
        let n = self.int()?;
        let n = usize::try_from(n).map_err(|_| format!("there cannot be {n} of anything"))?;
        if n > self.rest.len() / bytes {
            return Err(format!("the file ends before its {n} items").into());
        }
        Ok(n)
    }

    fn reals<const N: usize>(&mut self) -> Result<[f64; N], ReadError> {
        let mut reals = [0.0; N];
        for real in &mut reals {
            *real = f64::from(f32::from_le_bytes(self.four()?));
        }
        Ok(reals)
    }
}

/// Returns the problem in these bytes.
///
/// # Errors
/// Fails if they are not of this format, or a mark refers to a missing camera or point.
pub fn parse(bytes: &[u8]) -> Result<Problem, ReadError> {
    let (is_little, rest) = match bytes {
        [b'v', b'P', rest @ ..] => (true, rest),
        [b'V', b'P', rest @ ..] => (false, rest),
        _ => return Err("this is no libmv problem with marks in picture elements".into()),
    };
    let mut bytes = Bytes { rest, is_little };
    let lens = bytes.reals::<8>()?;
    let mut problem =
        Problem { cameras: Vec::new(), points: Vec::new(), lens, seen: Vec::new(), observations: Vec::new() };
    let (mut camera_of, mut point_of) = (BTreeMap::new(), BTreeMap::new());
    for camera in 0..bytes.count(52)? {
        camera_of.insert(bytes.int()?, camera);
        let rotation = bytes.reals::<9>()?;
        problem.cameras.extend(axis_angle(&rotation));
        problem.cameras.extend(bytes.reals::<3>()?);
    }
    for point in 0..bytes.count(16)? {
        point_of.insert(bytes.int()?, point);
        problem.points.extend(bytes.reals::<3>()?);
    }
    for mark in 0..bytes.count(16)? {
        let (picture, track) = (bytes.int()?, bytes.int()?);
        match (camera_of.get(&picture), point_of.get(&track)) {
            (Some(camera), Some(point)) => problem.observations.push((*camera, *point)),
            _ => {
                return Err(format!(
                    "mark {mark} is of picture {picture} and track {track}, not both of which are there"
                )
                .into());
            }
        }
        problem.seen.extend(bytes.reals::<2>()?);
    }
    if bytes.rest.is_empty() { Ok(problem) } else { Err("the file goes on after its end".into()) }
}

/// Returns axis times angle of a rotation matrix in column-major order.
fn axis_angle(matrix: &[f64; 9]) -> [f64; 3] {
    let at = |row: usize, column: usize| matrix[3 * column + row];
    // Twice the sine of the angle times the axis.
    let axis = [at(2, 1) - at(1, 2), at(0, 2) - at(2, 0), at(1, 0) - at(0, 1)];
    let sine = 0.5 * axis.iter().map(|x| x * x).sum::<f64>().sqrt();
    let cosine = 0.5 * (at(0, 0) + at(1, 1) + at(2, 2) - 1.0);
    if sine > 1e-9 {
        return axis.map(|x| x * 0.5 * sine.atan2(cosine) / sine);
    }
    if cosine > 0.0 {
        return axis.map(|x| 0.5 * x);
    }
    // A rotation by pi: the matrix is 2 a aT - 1.
    let k = (0..3).max_by(|a, b| at(*a, *a).total_cmp(&at(*b, *b))).unwrap_or(0);
    let length = (0.5 * (at(k, k) + 1.0)).sqrt();
    let axis = |i: usize| if i == k { length } else { 0.5 * at(i, k) / length };
    [axis(0), axis(1), axis(2)].map(|x| x * std::f64::consts::PI)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotations_have_an_axis_and_an_angle() {
        assert_eq!(axis_angle(&[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]), [0.0; 3]);
        // A rotation by pi/2 about z: x goes to y.
        let quarter = axis_angle(&[0.0, 1.0, 0.0, -1.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
        assert!((quarter[2] - std::f64::consts::FRAC_PI_2).abs() < 1e-15 && quarter[0] == 0.0);
        let half = axis_angle(&[1.0, 0.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0, -1.0]);
        assert_eq!(half, [std::f64::consts::PI, 0.0, 0.0]);
    }

    #[test]
    fn what_is_no_problem_is_told() {
        for (bytes, message) in [
            (&b"xP"[..], "this is no libmv problem with marks in picture elements"),
            (&b"vP123"[..], "the file ends too early"),
        ] {
            assert_eq!(parse(bytes).map_err(|e| e.to_string()), Err(message.to_owned()));
        }
        let mut bytes = b"vP".to_vec();
        bytes.extend([0; 32]);
        bytes.extend([255; 4]);
        assert_eq!(parse(&bytes).map_err(|e| e.to_string()), Err("there cannot be -1 of anything".to_owned()));
        bytes.truncate(34);
        bytes.extend([0; 12]);
        assert_eq!(parse(&bytes).map(|problem| problem.observations.len()).map_err(|e| e.to_string()), Ok(0));
    }
}
