//! Packets of a capture that were of no use, by the reason.

use std::collections::BTreeMap;

use crate::packet::Skip;

/// Kinds that are named, the most frequent of each reason.
const NAMED: usize = 4;

/// How many there were.
#[derive(Clone, Debug, Default)]
pub struct Skipped(BTreeMap<Skip, u64>);

/// Names of the numbers that are met most (tcpdump.org/linktypes.html; IANA's registers).
const LINKS: [(u16, &str); 30] = [
    (6, "Token Ring"),
    (10, "FDDI"),
    (11, "ATM"),
    (100, "ATM"),
    (105, "IEEE 802.11"),
    (107, "Frame Relay"),
    (117, "PF's log"),
    (119, "IEEE 802.11 with Prism"),
    (123, "ATM"),
    (127, "IEEE 802.11 with radiotap"),
    (143, "DOCSIS"),
    (147, "user 0"),
    (163, "IEEE 802.11 with AVS"),
    (187, "Bluetooth"),
    (189, "USB"),
    (192, "PPI, as of IEEE 802.11"),
    (195, "IEEE 802.15.4"),
    (197, "ERF"),
    (201, "Bluetooth"),
    (220, "USB"),
    (227, "CAN"),
    (230, "IEEE 802.15.4"),
    (247, "InfiniBand"),
    (249, "USB"),
    (251, "Bluetooth"),
    (252, "Wireshark's upper PDU"),
    (253, "netlink"),
    (254, "Bluetooth"),
    (256, "Bluetooth"),
    (258, "PKTAP"),
];
const ETHER_TYPES: [(u16, &str); 7] = [
    (0x0806, "ARP"),
    (0x8863, "PPPoE discovery"),
    (0x888e, "EAP"),
    (0x88cc, "LLDP"),
    (0x88e5, "MACsec"),
    (0x88f7, "PTP"),
    (0x8847, "MPLS"),
];
const PPP: [(u16, &str); 7] = [
    (0x8021, "IPCP"),
    (0x8057, "IPv6CP"),
    (0x80fd, "CCP"),
    (0xc021, "LCP"),
    (0xc023, "PAP"),
    (0xc025, "link quality"),
    (0xc223, "CHAP"),
];
const LLC: [(u16, &str); 5] = [
    (0x42, "spanning tree"),
    (0xe0, "IPX"),
    (0xf0, "NetBIOS"),
    (0xfe, "OSI, as IS-IS"),
    (0xff, "IPX"),
];
const PROTOCOLS: [(u16, &str); 9] = [
    (1, "ICMP"),
    (2, "IGMP"),
    (17, "UDP"),
    (47, "GRE"),
    (50, "ESP"),
    (58, "ICMPv6"),
    (89, "OSPF"),
    (115, "L2TPv3"),
    (132, "SCTP"),
];

impl Skipped {
    /// A packet.
    pub fn count(&mut self, skip: Skip) {
        *self.0.entry(skip).or_default() += 1;
    }

    /// How many for this reason.
    pub fn of(&self, skip: Skip) -> u64 {
        self.0.get(&skip).copied().unwrap_or_default()
    }

    /// All but those for this reason.
    pub fn without(mut self, skip: Skip) -> Skipped {
        self.0.remove(&skip);
        self
    }

    /// The note on them, if there are any.
    pub fn note(&self, packets: u64) -> Option<String> {
        let mut reasons: Vec<Reason> = Vec::new();
        for (&skip, &count) in &self.0 {
            let (why, kind) = named(skip);
            if reasons.last().is_none_or(|last| last.why != why) {
                reasons.push(Reason { why, count: 0, kinds: Vec::new() });
            }
            if let Some(reason) = reasons.last_mut() {
                reason.count += count;
                reason.kinds.extend(kind.map(|kind| (count, kind)));
            }
        }
        let reasons: Vec<String> = reasons.into_iter().map(Reason::text).collect();
        (!reasons.is_empty())
            .then(|| format!("skipped of {packets} packets: {}", reasons.join(", ")))
    }
}

/// A reason, and how many of each kind there were.
struct Reason {
    why: &'static str,
    count: u64,
    kinds: Vec<(u64, String)>,
}

impl Reason {
    fn text(mut self) -> String {
        self.kinds.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        let rest: u64 = self.kinds.iter().skip(NAMED).map(|(count, _)| count).sum();
        let named = self.kinds.iter().take(NAMED).map(|(count, kind)| format!("{count} {kind}"));
        let others = (rest > 0).then(|| format!("{rest} others"));
        let kinds: Vec<String> = named.chain(others).collect();
        let Reason { why, count, .. } = self;
        match kinds.is_empty() {
            true => format!("{count} {why}"),
            false => format!("{count} {why} ({})", kinds.join(", ")),
        }
    }
}

/// The reason, and what it was instead.
fn named(skip: Skip) -> (&'static str, Option<String>) {
    let name = |names: &[(u16, &str)], number: u16| {
        let name = names.iter().find(|(known, _)| *known == number);
        name.map_or(String::new(), |(_, name)| format!(" {name}"))
    };
    const NOT_IP: &str = "not IP";
    match skip {
        Skip::Far => ("with a time that is days from that of all around (damage)", None),
        Skip::Untimed => ("without a time (simple packet blocks)", None),
        Skip::Link(number) => {
            ("of an unknown link type", Some(format!("of {number}{}", name(&LINKS, number))))
        }
        Skip::NotIp(kind) => {
            (NOT_IP, Some(format!("of EtherType 0x{kind:04x}{}", name(&ETHER_TYPES, kind))))
        }
        Skip::NotPppIp(number) => {
            (NOT_IP, Some(format!("of PPP 0x{number:04x}{}", name(&PPP, number))))
        }
        Skip::NotLlcIp(service) => {
            (NOT_IP, Some(format!("of LLC 0x{service:02x}{}", name(&LLC, service.into()))))
        }
        Skip::NotIpVersion(version) => (NOT_IP, Some(format!("of version {version}"))),
        Skip::NotTcp(number) => {
            let name = name(&PROTOCOLS, number.into());
            ("not TCP", Some(format!("of IP protocol {number}{name}")))
        }
        Skip::Fragment => ("fragmented", None),
        Skip::Deep => ("in too many tunnels", None),
        Skip::Cut => ("cut within their headers", None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_met_most_has_its_number() {
        let mut skipped = Skipped::default();
        assert_eq!(skipped.note(9), None);
        let times = [(17, 1), (50, 3), (1, 2), (89, 4), (200, 5), (201, 1)];
        for (number, count) in times {
            (0..count).for_each(|_| skipped.count(Skip::NotTcp(number)));
        }
        let others = [
            Skip::Link(119),
            Skip::Link(147),
            Skip::NotIp(0x88cc),
            Skip::NotPppIp(0xc021),
            Skip::NotLlcIp(0x42),
            Skip::NotIpVersion(5),
        ];
        others.into_iter().for_each(|skip| skipped.count(skip));
        assert_eq!(
            skipped.note(30).unwrap(),
            "skipped of 30 packets: 2 of an unknown link type (1 of 119 IEEE 802.11 with Prism, 1 of 147 user 0), \
             4 not IP (1 of EtherType 0x88cc LLDP, 1 of PPP 0xc021 LCP, 1 of LLC 0x42 spanning tree, 1 of version 5), \
             16 not TCP (5 of IP protocol 200, 4 of IP protocol 89 OSPF, 3 of IP protocol 50 ESP, 2 of IP protocol \
             1 ICMP, 2 others)"
        );
    }
}
