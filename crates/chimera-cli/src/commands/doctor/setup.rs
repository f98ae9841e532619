//! How a medium is made ready for stores: steps, most with a command.

use std::path::Path;

use chimera_pmem::Medium;
use serde::Serialize;

use super::machine::Machine;
use super::mounts::Mount;
use super::place::Place;

/// One step.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Step {
    pub(super) what: String,
    /// What does it. Nothing of it is run by this program.
    pub(super) command: Option<String>,
}

/// The steps for the medium that the place has.
pub(super) fn steps(medium: Medium, place: &Place, machine: &Machine) -> Vec<Step> {
    let mut steps = match medium {
        Medium::FsDax => on_fs_dax(place),
        Medium::DevDax => on_dev_dax(place),
        Medium::File => on_plain_files(place, machine),
        Medium::Tmpfs => on_tmpfs(place),
        Medium::Anonymous | Medium::Simulated => Vec::new(),
    };
    if let (false, Some(device)) = (medium == Medium::DevDax, machine.dax_devices.first()) {
        let device = format!("/dev/{device}");
        steps.push(step("this machine has a DAX device, which can hold a store, too", {
            doctor(Path::new(&device))
        }));
    }
    steps
}

fn on_fs_dax(place: &Place) -> Vec<Step> {
    let mut steps = vec![note("nothing is missing: the file system is mounted for direct access")];
    if let Some(mount) = &place.mount {
        let Mount { source, point, file_system, .. } = mount;
        let option = mount.dax_option().unwrap_or("dax");
        let (source, point) = (quoted(Path::new(source)), quoted(point));
        let line = format!("{source} {point} {file_system} {option} 0 0");
        steps.push(step("a line of /etc/fstab mounts it so at each start", line));
    }
    steps
}

fn on_dev_dax(place: &Place) -> Vec<Step> {
    let path = quoted(&place.path);
    vec![
        step("the user of the store reads and writes the device", format!("chown USER {path}")),
        note("one store takes the whole device; a smaller one takes a namespace of its own"),
        step(
            "a free region becomes such a device so",
            "ndctl create-namespace --mode=devdax".to_owned(),
        ),
    ]
}

fn on_plain_files(place: &Place, machine: &Machine) -> Vec<Step> {
    if let (Some(true), Some(mount)) = (place.device_can_dax, &place.mount) {
        let (source, point) = (quoted(Path::new(&mount.source)), quoted(&mount.point));
        return vec![
            step("nobody uses the file system meanwhile", format!("umount {point}")),
            step("mount it for direct access", format!("mount -o dax=always {source} {point}")),
            step("look again", doctor(&place.path)),
        ];
    }
    if let Some(device) = machine.pmem_devices.first() {
        return vec![
            step(
                "make a file system on persistent memory, which erases what is there",
                format!("mkfs.ext4 -b 4096 /dev/{device}"),
            ),
            step(
                "mount it for direct access",
                format!("mount -o dax=always /dev/{device} /mnt/pmem"),
            ),
            step("look there", doctor(Path::new("/mnt/pmem/store"))),
        ];
    }
    let path = quoted(&place.path);
    vec![
        note("nothing is missing: a journal keeps stores on plain files whole"),
        step(
            "a write that must survive a power loss at once says so",
            format!("chimera put --path {path} --durability immediate KEY VALUE"),
        ),
    ]
}

fn on_tmpfs(place: &Place) -> Vec<Step> {
    let mut steps =
        vec![step("what must last needs a directory on a disk", doctor(Path::new("DIRECTORY")))];
    let mount = place.mount.as_ref().filter(|mount| mount.option("huge").is_none());
    if let Some(mount) = mount {
        let point = quoted(&mount.point);
        let command = format!("mount -o remount,huge=advise {point}");
        steps.push(step("huge pages make stores here faster", command));
    }
    steps
}

fn doctor(path: &Path) -> String {
    format!("chimera doctor --path {}", quoted(path))
}

fn note(what: &str) -> Step {
    Step { what: what.to_owned(), command: None }
}

fn step(what: &str, command: String) -> Step {
    Step { what: what.to_owned(), command: Some(command) }
}

/// A path as a word of a shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+:@%=,".contains(letter);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// The commands of the steps, at a place on the file system that a line of `mountinfo` describes.
    fn commands(medium: Medium, mountinfo: &str, change: impl Fn(&mut Place)) -> Vec<String> {
        let mut place = Place::look(Path::new("/")).expect("a root");
        place.path = PathBuf::from("/data/my store");
        place.mount = Mount::of(&place.path, mountinfo);
        place.device_can_dax = None;
        change(&mut place);
        let machine =
            Machine { pmem_devices: Vec::new(), dax_devices: Vec::new(), ..Machine::look() };
        steps(medium, &place, &machine).into_iter().filter_map(|step| step.command).collect()
    }

    #[test]
    fn each_medium_has_its_steps() {
        let dax = "36 22 259:0 / /data rw,noatime - xfs /dev/pmem0 rw,dax=always\n";
        let line = "/dev/pmem0 /data xfs dax=always 0 0";
        assert_eq!(commands(Medium::FsDax, dax, |_| ()), [line]);
        let plain = "36 22 254:0 / / rw - ext4 /dev/vda rw\n";
        let put = "chimera put --path '/data/my store' --durability immediate KEY VALUE";
        assert_eq!(commands(Medium::File, plain, |_| ()), [put]);
        let could = commands(Medium::File, dax, |place| place.device_can_dax = Some(true));
        assert_eq!(could[..2], ["umount /data", "mount -o dax=always /dev/pmem0 /data"]);
        let memory = "36 22 0:25 / /data rw - tmpfs tmpfs rw\n";
        let found = commands(Medium::Tmpfs, memory, |_| ());
        assert_eq!(found[1], "mount -o remount,huge=advise /data");
        let device = |place: &mut Place| place.path = PathBuf::from("/dev/dax0.0");
        assert_eq!(commands(Medium::DevDax, plain, device)[0], "chown USER /dev/dax0.0");
    }
}
