//! Robots from URDF files.

use crate::dynamics::Body;
use crate::robot::{Link, Transform, product, rigid};
use std::path::Path;
use urdf_rs::{JointType, Pose};

fn transform_of(pose: &Pose) -> Transform {
    rigid(pose.xyz.0, pose.rpy.0)
}

fn identity() -> Transform {
    rigid([0.0; 3], [0.0; 3])
}

/// Returns the revolute joints of the file as one serial chain. Bodies on fixed joints belong to the link that carries
/// them, and so do the fingers of a gripper (prismatic joints) in their current position.
///
/// # Errors
/// Fails if the file cannot be read, or its revolute joints do not form one chain.
pub fn load(path: &Path) -> Result<Vec<Link>, Box<dyn std::error::Error>> {
    let robot = urdf_rs::read_file(path)?;
    let is_child = |name: &str| robot.joints.iter().any(|joint| joint.child.link == name);
    let root = robot.links.iter().find(|link| !is_child(&link.name)).ok_or("the file has no root link")?;
    let mut links: Vec<Link> = Vec::new();
    // Link of the file, number of joints below it, its frame seen from the last of them.
    let mut todo = vec![(root.name.clone(), 0, identity())];
    while let Some((name, below, frame)) = todo.pop() {
        if let Some(link) = robot.links.iter().find(|link| link.name == name)
            && below > 0
        {
            let i = &link.inertial;
            let t = i.inertia.clone();
            let tensor = [[t.ixx, t.ixy, t.ixz], [t.ixy, t.iyy, t.iyz], [t.ixz, t.iyz, t.izz]];
            let body = Body::new(i.mass.value, [0.0; 3], tensor).moved(&product(&frame, &transform_of(&i.origin)));
            links[below - 1].body = links[below - 1].body.with(&body);
        }
        for joint in robot.joints.iter().filter(|joint| joint.parent.link == name) {
            let place = product(&frame, &transform_of(&joint.origin));
            if !matches!(joint.joint_type, JointType::Revolute | JointType::Continuous) {
                todo.push((joint.child.link.clone(), below, place));
                continue;
            }
            if below < links.len() {
                return Err(format!("the joint {} makes the chain branch", joint.name).into());
            }
            let axis = joint.axis.xyz.0;
            let length = axis.iter().map(|x| x * x).sum::<f64>().sqrt();
            links.push(Link {
                name: joint.name.clone(),
                origin: place,
                axis: axis.map(|x| x / length),
                body: Body::nothing(),
            });
            todo.push((joint.child.link.clone(), below + 1, identity()));
        }
    }
    if links.is_empty() { Err("the file has no revolute joints".into()) } else { Ok(links) }
}
