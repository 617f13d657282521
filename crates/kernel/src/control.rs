//! A control in the kernel, which sockets can select by name.
//!
//! The BPF side is `src/bpf/control.bpf.c`, compiled once per law; detector and slow start are
//! constants that are set before the verifier sees the programs.

use crate::object::{self, ends_with, verified_insns};
use crate::register::{Kernel, NAME_MAX, available_controls};
use crate::state::{self, CONNS, DETECTIONS, SHARED};
use crate::{Error, Settings, libbpf_log};
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{MemberAttr, Struct};
use libbpf_rs::{
    AsRawLibbpf, ErrorKind, Link, Map, MapCore, MapHandle, Object, ObjectBuilder, OpenObject,
};
use narrows_laws::catalogue::kernel_name;
use narrows_laws::{Control, Detector};
use std::os::fd::AsFd;

/// A control accepted by the verifier, but not registered yet.
pub struct Loaded {
    control: Control,
    name: String,
    object: Object,
}

/// A registered control. Unregistered when dropped; sockets that run it keep it until they close.
pub struct Registered {
    // Before the object: it must be closed first.
    link: Link,
    loaded: Loaded,
}

/// Can the kernel run `control`? Not with a detector that takes too much work and memory.
///
/// # Errors
/// It cannot.
pub fn loadable(control: Control) -> Result<(), Error> {
    if control.detector.is_for_kernel() {
        return Ok(());
    }
    let detectors = Detector::all().filter(|known| known.is_for_kernel()).map(Detector::name);
    let known = detectors.collect::<Vec<_>>().join(", ");
    let name = control.detector.name();
    let message = format!("the kernel has no detector '{name}'; it has: {known}");
    Err(Error::input(control.to_string(), message))
}

impl Loaded {
    /// Loads `control` with `settings` through the verifier. It shares an existing
    /// state map, so that connections which change their control, or got it before an unload, stay
    /// together.
    ///
    /// # Errors
    /// [`loadable`], not root, a kernel that is too old, a refusal by the verifier, a
    /// living state map of another layout.
    pub fn load(control: Control, settings: &Settings) -> Result<Loaded, Error> {
        loadable(control)?;
        Loaded::load_object(control, settings, object::of_control(control), None)
    }

    /// The same with another object; given `room` for connections and for detectors, with maps of its
    /// own.
    pub(crate) fn load_object(
        control: Control,
        settings: &Settings,
        object: &[u8],
        room: Option<[u32; 2]>,
    ) -> Result<Loaded, Error> {
        let kernel = Kernel::probe()?;
        let name = kernel_name(control);
        let failed = |doing| Error::bpf(&name, doing);
        let mut open = ObjectBuilder::default()
            .name("narrows")
            .and_then(|builder| builder.open_memory(object))
            .map_err(failed("open"))?;
        let at = name_offset(&open).expect("the object has a congestion control");
        for mut map in open.maps_mut() {
            if map.name() == "nr_ops" {
                let ops = map.initial_value_mut().expect("struct_ops have values");
                ops[at..at + NAME_MAX].fill(0);
                ops[at..at + name.len()].copy_from_slice(name.as_bytes());
                kernel.prepare(&mut map).map_err(failed("request a link for"))?;
            } else if ends_with(map.name(), ".rodata.control") {
                let constants = object::constants(control, settings);
                map.set_initial_value(&constants).map_err(failed("choose"))?;
            } else if ends_with(map.name(), ".rodata.first") {
                let detection = object::detection(&settings.params);
                map.set_initial_value(&detection).map_err(failed("choose"))?;
            } else if SHARED.iter().any(|shared| map.name() == *shared) {
                state::not_pinned(&mut map);
                match room {
                    Some([room, _]) if map.name() == CONNS => {
                        map.set_max_entries(room).map_err(failed("limit"))?;
                    }
                    Some([_, room]) if map.name() == DETECTIONS => {
                        map.set_max_entries(room).map_err(failed("limit"))?;
                    }
                    Some(_) => {}
                    None => {
                        if let Some(living) = state::living(&name, &map)? {
                            map.reuse_fd(living.as_fd()).map_err(failed("share"))?;
                        }
                    }
                }
            }
        }
        let object = libbpf_log::load(&name, open)?;
        Ok(Loaded { control, name, object })
    }

    /// Registers it, so that sockets can select it by name.
    ///
    /// # Errors
    /// The name is taken.
    pub fn register(mut self) -> Result<Registered, Error> {
        let mut ops = self.object.maps_mut().find(|map| map.name() == "nr_ops");
        let (link, _) =
            libbpf_log::capture(|| ops.as_mut().expect("found above").attach_struct_ops());
        let link = link.map_err(|source| match source.kind() {
            ErrorKind::AlreadyExists => Error::NameTaken(self.name.clone(), ""),
            _ => Error::Bpf { what: self.name.clone(), doing: "register", source },
        })?;
        Ok(Registered { link, loaded: self })
    }

    /// Its name in the kernel: `nr_olia`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The control.
    pub fn control(&self) -> Control {
        self.control
    }

    /// The object with its maps and programs.
    pub fn object(&self) -> &Object {
        &self.object
    }

    pub(crate) fn object_mut(&mut self) -> &mut Object {
        &mut self.object
    }

    /// Each program with its number of verified instructions.
    ///
    /// # Errors
    /// The kernel does not report it.
    pub fn verified_insns(&self) -> Result<Vec<(String, u32)>, Error> {
        verified_insns(&self.object).map_err(Error::bpf(&self.name, "inspect"))
    }

    /// A map of the object.
    pub(crate) fn map(&self, name: &str) -> Map<'_> {
        let map = self.object.maps().find(|map| map.name() == name);
        map.unwrap_or_else(|| panic!("the object has a map {name}"))
    }

    /// Those of its maps that all controls share, by name.
    pub(crate) fn shared(&self) -> impl Iterator<Item = (&'static str, Map<'_>)> {
        let name = |map: &Map<'_>| SHARED.into_iter().find(|name| map.name() == *name);
        self.object.maps().filter_map(move |map| Some((name(&map)?, map)))
    }
}

impl Registered {
    /// Loads and registers `control`.
    ///
    /// # Errors
    /// As [`Loaded::load`]; the name is taken.
    pub fn register(control: Control) -> Result<Registered, Error> {
        Registered::with(control, &Settings::default())
    }

    /// The same, loaded with `settings`.
    ///
    /// # Errors
    /// As [`Registered::register`].
    pub fn with(control: Control, settings: &Settings) -> Result<Registered, Error> {
        let name = kernel_name(control);
        // Before the work of the verifier.
        if available_controls()?.contains(&name) {
            crate::available()?;
            return Err(Error::NameTaken(name, ""));
        }
        Loaded::load(control, settings)?.register()
    }

    /// The same with the default settings and maps of its own, with room for a number of
    /// connections, and for detectors of connections, that a test can fill.
    ///
    /// # Errors
    /// As [`Registered::register`].
    pub fn with_room(control: Control, room: [u32; 2]) -> Result<Registered, Error> {
        loadable(control)?;
        let object = object::of_control(control);
        Loaded::load_object(control, &Settings::default(), object, Some(room))?.register()
    }

    /// The same with the default settings, from an object of the caller's.
    ///
    /// # Errors
    /// As [`Registered::register`].
    pub fn with_object(control: Control, object: &[u8]) -> Result<Registered, Error> {
        loadable(control)?;
        Loaded::load_object(control, &Settings::default(), object, None)?.register()
    }

    /// Its name in the kernel: `nr_olia`.
    pub fn name(&self) -> &str {
        &self.loaded.name
    }

    /// The counters since it was loaded, by name.
    ///
    /// # Errors
    /// The kernel does not report it.
    pub fn counters(&self) -> Result<Vec<(&'static str, u64)>, Error> {
        let counters = MapHandle::try_from(&self.loaded.map("nr_counters"));
        counters
            .and_then(|counters| state::counters(&counters))
            .map_err(Error::bpf(self.name(), "read the counters of"))
    }

    /// Each program with its number of verified instructions.
    ///
    /// # Errors
    /// The kernel does not report it.
    pub fn verified_insns(&self) -> Result<Vec<(String, u32)>, Error> {
        self.loaded.verified_insns()
    }

    /// What it was loaded from.
    pub fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    pub(crate) fn link_mut(&mut self) -> &mut Link {
        &mut self.link
    }
}

/// Where the name stands in the object's struct_ops, by its own types.
fn name_offset(open: &OpenObject) -> Option<usize> {
    // SAFETY: libbpf's object lives as long as `open`.
    let btf = Btf::from_bpf_object(unsafe { open.as_libbpf_object().as_ref() }).ok()??;
    let ops = btf.type_by_name::<Struct<'_>>("tcp_congestion_ops")?;
    let member = ops.iter().find(|member| member.name.is_some_and(|name| name == "name"))?;
    match member.attr {
        MemberAttr::Normal { offset } => Some(offset as usize / 8),
        MemberAttr::BitField { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detector_that_is_not_for_the_kernel_is_refused_in_one_line() {
        let refused = loadable("olia+dcw".parse().unwrap()).unwrap_err().to_string();
        let expected = "olia+dcw: the kernel has no detector 'dcw'; \
                        it has: shared, disjoint, ssc, tr, btlbw, xcorr";
        assert_eq!(refused, expected);
        assert!(loadable(Control::OLIA).is_ok());
    }
}
