//! A host's devices: TUN devices, addresses, routes and settings, made from inside its namespace.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::net::if_::if_nametoindex;
use rtnetlink::packet_route::address::AddressHeaderFlags;
use rtnetlink::packet_route::route::RouteMessage;
use rtnetlink::packet_route::rule::RuleAction;
use rtnetlink::{Handle, LinkMessageBuilder, LinkUnspec, RouteMessageBuilder};

use crate::{DeviceConfig, HostConfig};

/// What opens TUN devices.
pub const TUN: &str = "/dev/net/tun";

/// Packets that wait in a device until they are read: more than any window, so that nothing is lost
/// before the network decides about it.
const QUEUE: u32 = 10_000;

/// The routing table of a host's first device, if it has more than one; then one by one.
const TABLE: u32 = 100;

/// What could not be done, and why.
pub type Refusal = (String, io::Error);

nix::ioctl_write_ptr_bad!(tun_set_iff, libc::TUNSETIFF, libc::ifreq);

/// Makes all that a host has, in the namespace of this thread, and returns its open TUN devices.
pub fn configure(host: &HostConfig) -> Result<Vec<File>, Refusal> {
    set_sysctls()?;
    let open = |device: &DeviceConfig| {
        open_tun(&device.name).map_err(|error| (format!("make device {}", device.name), error))
    };
    let tuns = host.devices.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    let runtime = runtime.map_err(|error| ("start a runtime".into(), error))?;
    runtime.block_on(async {
        let opened = rtnetlink::new_connection();
        let (connection, netlink, _) = opened.map_err(|error| ("use netlink".into(), error))?;
        let connection = tokio::spawn(connection);
        let done = configure_devices(&netlink, &host.devices).await;
        connection.abort();
        done
    })?;
    Ok(tuns)
}

/// One packet a read and a write, whole and without a header of the device's own: what leaves the
/// stack has been segmented and has its checksums.
fn open_tun(name: &str) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let tun = options.read(true).write(true).custom_flags(libc::O_NONBLOCK).open(TUN)?;
    // SAFETY: an ifreq is plain data, for which all zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let bytes = CString::new(name)?.into_bytes_with_nul();
    if bytes.len() > request.ifr_name.len() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the name is too long"));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(bytes) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the descriptor is open and TUNSETIFF reads an ifreq.
    unsafe { tun_set_iff(tun.as_raw_fd(), &request) }?;
    Ok(tun)
}

/// What holds for all of a namespace, and for the devices made after it.
fn set_sysctls() -> Result<(), Refusal> {
    const IPV4: [(&str, &str); 3] = [
        // A connection must not begin with what the last one learnt of the path.
        ("ipv4/tcp_no_metrics_save", "1"),
        // The way back may be another device's.
        ("ipv4/conf/all/rp_filter", "0"),
        ("ipv4/conf/default/rp_filter", "0"),
    ];
    // Addresses are there at once, and devices say nothing on their own: no link-local address, no
    // search for duplicates or routers.
    const IPV6: [(&str, &str); 5] = [
        ("ipv6/conf/default/addr_gen_mode", "1"),
        ("ipv6/conf/all/accept_dad", "0"),
        ("ipv6/conf/default/accept_dad", "0"),
        ("ipv6/conf/default/accept_ra", "0"),
        ("ipv6/conf/default/router_solicitations", "0"),
    ];
    let root = Path::new("/proc/sys/net");
    let ipv6 = root.join("ipv6").exists().then_some(IPV6);
    for (name, value) in IPV4.into_iter().chain(ipv6.into_iter().flatten()) {
        let written = fs::write(root.join(name), value);
        written.map_err(|error| (format!("set net/{name} to {value}"), error))?;
    }
    Ok(())
}

fn io_error(error: rtnetlink::Error) -> io::Error {
    match error {
        rtnetlink::Error::NetlinkError(message) => message.to_io(),
        other => io::Error::other(other),
    }
}

async fn configure_devices(netlink: &Handle, devices: &[DeviceConfig]) -> Result<(), Refusal> {
    let index = |name: &str| {
        if_nametoindex(name).map_err(|errno| (format!("find device {name}"), errno.into()))
    };
    let set = async |name: &str, message: LinkMessageBuilder<LinkUnspec>| {
        let done = netlink.link().set(message.up().build()).execute().await;
        done.map_err(|error| (format!("set up device {name}"), io_error(error)))
    };
    set("lo", LinkUnspec::new_with_index(index("lo")?)).await?;
    for (table, device) in (TABLE..).zip(devices) {
        let name = &device.name;
        let index = index(name)?;
        let link = LinkUnspec::new_with_index(index).mtu(device.mtu).txqueuelen(QUEUE);
        set(name, link).await?;
        for &address in &device.addresses {
            let mut request = netlink.address().add(index, address, host_prefix(address));
            if address.is_ipv6() {
                request.message_mut().header.flags = AddressHeaderFlags::Nodad;
            }
            let done = request.execute().await;
            done.map_err(|error| (format!("add {address} to {name}"), io_error(error)))?;
        }
        let v4 = device.addresses.iter().find(|address| address.is_ipv4());
        let v6 = device.addresses.iter().find(|address| address.is_ipv6());
        for &source in v4.into_iter().chain(v6) {
            let add = async |table: Option<u32>| {
                let done = netlink.route().add(default_route(index, source, table)).execute().await;
                done.map_err(|error| (format!("add a default route by {name}"), io_error(error)))
            };
            if table == TABLE {
                add(None).await?;
            }
            if devices.len() > 1 {
                add(Some(table)).await?;
            }
        }
        if devices.len() > 1 {
            for &address in &device.addresses {
                let done = add_rule(netlink, address, table).await;
                done.map_err(|error| (format!("add a rule for {address}"), io_error(error)))?;
            }
        }
    }
    Ok(())
}

/// The prefix length of one address.
fn host_prefix(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// Everything by this device, from `source` if there is no source yet. Table: main if none.
fn default_route(device: u32, source: IpAddr, table: Option<u32>) -> RouteMessage {
    match source {
        IpAddr::V4(source) => {
            let route = RouteMessageBuilder::<Ipv4Addr>::new().output_interface(device);
            let route = route.pref_source(source);
            table.into_iter().fold(route, RouteMessageBuilder::table_id).build()
        }
        IpAddr::V6(source) => {
            let route = RouteMessageBuilder::<Ipv6Addr>::new().output_interface(device);
            let route = route.pref_source(source);
            table.into_iter().fold(route, RouteMessageBuilder::table_id).build()
        }
    }
}

/// What is sent from this address is routed by this table.
async fn add_rule(netlink: &Handle, from: IpAddr, table: u32) -> Result<(), rtnetlink::Error> {
    let rule = netlink.rule().add().table_id(table).action(RuleAction::ToTable);
    match from {
        IpAddr::V4(from) => rule.v4().source_prefix(from, 32).execute().await,
        IpAddr::V6(from) => rule.v6().source_prefix(from, 128).execute().await,
    }
}
