//! A diagnosis for people.

use chimera_pmem::FlushInstruction;

use super::Diagnosis;
use super::durability::nature;
use super::machine::Machine;
use super::mounts::Mount;
use super::opening::Opening;
use super::place::{Occupant, Place};
use super::probe::Probe;
use super::setup::Step;
use crate::human::{count, rounded_size, size};

/// All lines of it.
pub(super) fn lines(diagnosis: &Diagnosis) -> Vec<String> {
    let Diagnosis { place, probe, machine, .. } = diagnosis;
    let mut lines = Vec::new();
    section(&mut lines, "Place", place_rows(place, &diagnosis.opening));
    section(&mut lines, "Medium", medium_rows(place, probe));
    set_up(&mut lines, &diagnosis.setup);
    section(&mut lines, "Flushing", flush_rows(probe, machine));
    section(&mut lines, "Durability", durability_rows(diagnosis));
    section(&mut lines, "Huge pages", huge_page_rows(place, probe, machine));
    section(&mut lines, "Machine", machine_rows(machine));
    section(&mut lines, "Limits", limit_rows(probe, machine));
    for advice in &diagnosis.advice {
        lines.push(format!("warning: {}", advice.warning));
        lines.push(format!("         {}", advice.remedy));
    }
    if diagnosis.advice.is_empty() {
        lines.push("no warnings".to_owned());
    }
    lines
}

type Rows = Vec<(&'static str, String)>;

fn section(lines: &mut Vec<String>, title: &str, rows: Rows) {
    lines.push(title.to_owned());
    for (name, value) in rows {
        lines.push(format!("  {name:20}{value}"));
    }
    lines.push(String::new());
}

/// How the medium is made ready, each step with its command below it.
fn set_up(lines: &mut Vec<String>, steps: &[Step]) {
    lines.push("Set-up".to_owned());
    for Step { what, command } in steps {
        lines.push(format!("  {what}"));
        lines.extend(command.as_ref().map(|command| format!("    {command}")));
    }
    if steps.is_empty() {
        lines.push("  unknown, as the medium is".to_owned());
    }
    lines.push(String::new());
}

fn place_rows(place: &Place, opening: &Opening) -> Rows {
    let occupant = match place.occupant {
        Occupant::Store | Occupant::StoreOnDevice => {
            format!("yes, {} segment(s)", count(place.segments))
        }
        Occupant::UnreadableOnDevice => {
            let why = place.unreadable.as_deref().unwrap_or("unknown");
            format!("one that cannot be read: {why}")
        }
        Occupant::Nothing => {
            format!("none; it would be made in {}", place.directory.display())
        }
        Occupant::Directory => "none; the directory is there".to_owned(),
        Occupant::BlankDevice => "none; it would be made on this device".to_owned(),
        Occupant::Device => "none; this is a device, and not a free one".to_owned(),
        Occupant::File => "none; this is a file".to_owned(),
    };
    let mut rows = vec![("path", place.path.display().to_string()), ("store", occupant)];
    let opens = match opening {
        Opening { opens: Some(true), .. } => Some("yes".to_owned()),
        Opening { in_use_by: Some(holder), .. } => Some(format!("it is open in {holder}")),
        Opening { problem: Some(why), .. } => Some(format!("no: {why}")),
        Opening { .. } => None,
    };
    rows.extend(opens.map(|opens| ("opens", opens)));
    if let Some(mount) = &place.mount {
        let Mount { file_system, source, point, .. } = mount;
        let text = format!("{file_system} on {source}, mounted at {}", point.display());
        rows.push(("file system", text));
    }
    if let Some(free) = place.free_bytes {
        rows.push(("free", size(free)));
    }
    rows
}

fn medium_rows(place: &Place, probe: &Probe) -> Rows {
    let medium = probe.medium.map_or("unknown".to_owned(), |medium| medium.to_string());
    let mut rows = vec![("medium", medium)];
    if let Some(medium) = probe.medium {
        rows.push(("why", nature(medium).to_owned()));
    }
    rows.push(("found out", probe.method.to_owned()));
    if place.occupant.is_device() {
        return rows;
    }
    let dax = match place.mount.as_ref().and_then(Mount::dax_option) {
        Some(option) => format!("yes ({option})"),
        None => "no".to_owned(),
    };
    rows.push(("mounted for dax", dax));
    if let Some(can) = place.device_can_dax {
        rows.push(("device can dax", yes_or_no(can)));
    }
    rows
}

fn flush_rows(probe: &Probe, machine: &Machine) -> Rows {
    let has: Vec<_> = machine.flush_instructions.iter().map(ToString::to_string).collect();
    let has = if has.is_empty() { "none".to_owned() } else { has.join(", ") };
    let used = match probe.flush_instruction {
        Some(FlushInstruction::None) if !machine.flush_instructions.is_empty() => {
            "none: the platform saves its caches at a power loss".to_owned()
        }
        Some(instruction) => instruction.to_string(),
        None => "unknown".to_owned(),
    };
    let eadr = match machine.eadr {
        Some(true) => "yes: every region has the persistence domain cpu_cache".to_owned(),
        Some(false) => "no: caches do not survive a power loss".to_owned(),
        None => "cannot be told: no persistent-memory region says".to_owned(),
    };
    vec![("processor has", has), ("used here", used), ("eADR", eadr)]
}

fn durability_rows(diagnosis: &Diagnosis) -> Rows {
    let Some(durability) = &diagnosis.durability else {
        return vec![("by default", "unknown".to_owned())];
    };
    let mut rows =
        vec![("by default", durability.effective.to_string()), ("why", durability.why.to_owned())];
    for mode in &durability.modes {
        let possible = if mode.possible { "possible" } else { "not possible here" };
        rows.push((mode.name, format!("{possible}: {}", mode.meaning)));
    }
    rows
}

fn huge_page_rows(place: &Place, probe: &Probe, machine: &Machine) -> Rows {
    let setting = |setting: &Option<String>| setting.clone().unwrap_or("unknown".to_owned());
    let index = match machine.huge_pages.as_deref() {
        Some("always" | "madvise") => "yes, where memory allows",
        Some(_) => "no",
        None => "unknown",
    };
    let mapping = match (probe.huge_pages, place.occupant) {
        (Some(true), _) => "yes, a new mapping got them",
        (Some(false), _) => "no, a new mapping did not get any",
        (None, Occupant::Store | Occupant::StoreOnDevice | Occupant::UnreadableOnDevice) => {
            "not tried, a store is there: see `chimera stats`"
        }
        (None, Occupant::BlankDevice) => "not tried, nothing is written: see `chimera stats`",
        (None, _) => "unknown",
    };
    let mut rows = vec![
        ("for records", mapping.to_owned()),
        ("for the index", index.to_owned()),
        ("system setting", setting(&machine.huge_pages)),
        ("tmpfs setting", setting(&machine.huge_pages_tmpfs)),
    ];
    if let Some(huge) = place.mount.as_ref().and_then(|mount| mount.option("huge")) {
        rows.push(("of this mount", format!("huge={huge}")));
    }
    rows
}

fn machine_rows(machine: &Machine) -> Rows {
    let unknown = || "unknown".to_owned();
    let processor = machine.processor.clone().unwrap_or_else(unknown);
    let mut rows = vec![
        ("processor", format!("{processor} ({})", machine.architecture)),
        ("cores", machine.cores.to_string()),
        ("kernel", machine.kernel.clone().unwrap_or_else(unknown)),
        ("memory", machine.memory_bytes.map_or_else(unknown, rounded_size)),
        (
            "transactions",
            if machine.transactions { "commit" } else { "none that commit" }.to_owned(),
        ),
        ("available", machine.memory_available_bytes.map_or_else(unknown, rounded_size)),
    ];
    for region in &machine.regions {
        let domain = region.persistence_domain.as_deref().unwrap_or("unknown");
        rows.push(("pmem region", format!("{}, persistence domain {domain}", region.name)));
    }
    if !machine.pmem_devices.is_empty() {
        rows.push(("pmem devices", machine.pmem_devices.join(", ")));
    }
    if !machine.dax_devices.is_empty() {
        rows.push(("dax devices", machine.dax_devices.join(", ")));
    }
    rows
}

fn limit_rows(probe: &Probe, machine: &Machine) -> Rows {
    let bytes = |limit: Option<u64>| limit.map_or("unlimited".to_owned(), rounded_size);
    let reserved = match probe.address_space_bytes {
        Some(bytes) => format!("{} reserved at first, more as a store grows", rounded_size(bytes)),
        None => "cannot be reserved".to_owned(),
    };
    let overcommit = match machine.overcommit {
        Some(0) => "by guess (0)",
        Some(1) => "always (1)",
        Some(2) => "never (2)",
        _ => "unknown",
    };
    let files = match machine.limit_open_files {
        Some(files) => format!("{}, one for each segment of a store", count(files)),
        None => "unlimited".to_owned(),
    };
    vec![
        ("address space", reserved),
        ("ulimit -v", bytes(machine.limit_address_space_bytes)),
        ("overcommit", overcommit.to_owned()),
        ("locked memory", format!("{} (stores lock none)", bytes(machine.limit_locked_bytes))),
        ("open files", files),
        ("file size", bytes(machine.limit_file_bytes)),
    ]
}

fn yes_or_no(answer: bool) -> String {
    if answer { "yes" } else { "no" }.to_owned()
}
