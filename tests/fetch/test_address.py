"""The address guard, and the format of hosts files."""

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.errors import ConfigError
from trapline.fetch.address import Guard, refused
from trapline.fetch.dns import hosts_text, parse_hosts, read_hosts

REFUSED = {
    "unspecified": ["0.0.0.0", "0.1.2.3", "::", "::ffff:0.0.0.0"],
    "loopback": ["127.0.0.1", "127.255.255.254", "::1", "::ffff:127.0.0.1", "::ffff:7f00:1", "64:ff9b::127.0.0.1"],
    "private": ["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.0.1", "fc00::1", "fdff::1", "::ffff:10.0.0.1"],
    "shared": ["100.64.0.0", "100.127.255.255"],
    "link-local": ["169.254.169.254", "fe80::1", "febf::1", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe"],
    "site-local": ["fec0::1", "feff::1"],
    "documentation": ["192.0.2.1", "198.51.100.1", "203.0.113.255", "2001:db8::1", "3fff::1"],
    "benchmarking": ["198.18.0.1", "198.19.255.255", "2001:2::1"],
    "multicast": ["224.0.0.1", "239.255.255.255", "ff02::1"],
    "broadcast": ["255.255.255.255"],
    "reserved": ["192.0.0.1", "240.0.0.1", "2001:1::1", "2001:20::1", "4000::1", "1000::1", "5f00::1", "fe00::1"],
    "discard": ["100::1"],
    "tunnel": [
        "192.88.99.1",
        "::8.8.8.8",
        "::7f00:1",
        "64:ff9b:1::808:808",
        "2001::1",
        "2002:7f00:1::",
        "2002:808:808::",
    ],
    "valid on one link only": ["fe80::1%eth0", "2606:4700::1111%1", "::1%lo"],
    "not an address": [
        "",
        "localhost",
        "127.1",
        "0x7f000001",
        "2130706433",
        "010.0.0.1",
        "1.2.3.4/8",
        "[::1]",
        "1.2.3.4 ",
    ],
}
PUBLIC = [
    *("1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.0", "172.15.0.1", "172.32.0.1", "192.0.1.1", "192.88.98.1"),
    *(
        "223.255.255.255",
        "198.17.255.255",
        "198.20.0.0",
        "169.253.0.1",
        "2606:4700:4700::1111",
        "2a00:1450::1",
        "2003::1",
    ),
    *("::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2001:200::1", "2001:4860:4860::8888"),
]
ALLOWED_AS_PRIVATE = {"loopback", "private", "shared"}


@pytest.mark.parametrize(("why", "address"), [(why, address) for why, some in REFUSED.items() for address in some])
def test_why_an_address_is_refused(why: str, address: str) -> None:
    assert refused(address) == why
    assert Guard().check(address) == why
    assert Guard(allow_private=True).check(address) == ("" if why in ALLOWED_AS_PRIVATE else why)


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_pass(address: str) -> None:
    assert refused(address) == Guard().check(address) == Guard(allow_private=True).check(address) == ""


@given(st.ip_addresses(v=4))
def test_an_allowed_address_is_global_in_python_too(address: IPv4Address) -> None:
    """The reverse does not hold: we refuse more addresses than Python does."""
    assert refused(str(address)) or (address.is_global and not address.is_multicast)


@given(st.ip_addresses(v=6) | st.ip_addresses(network=IPv6Network("2000::/3")))
def test_an_allowed_address_is_global_unicast(address: IPv6Address) -> None:
    carries_v4 = address.ipv4_mapped is not None or address in IPv6Network("64:ff9b::/96")
    assert refused(str(address)) or carries_v4 or (address.is_global and address in IPv6Network("2000::/3"))


@given(st.ip_addresses(v=4))
def test_no_notation_of_a_private_address_makes_it_public(address: IPv4Address) -> None:
    """Every IPv6 form of an IPv4 address is refused if the IPv4 address is."""
    value = int(address)
    translated = [IPv6Address(prefix + value) for prefix in (0xFFFF << 32, 0x64FF9B << 96)]
    tunnels = [
        value,
        (0x2002 << 112) + (value << 80),
        (0x20010000 << 96) + (value ^ 0xFFFF_FFFF),
        (0x64FF9B0001 << 80) + value,
    ]
    assert [refused(str(form)) for form in translated] == [refused(str(address))] * 2
    assert all(refused(str(IPv6Address(tunnel))) for tunnel in tunnels)


@given(st.text(max_size=20))
def test_any_text_gets_a_verdict(text: str) -> None:
    if refused(text) != "not an address":
        ip_address(text)


# --- hosts files


@given(
    st.dictionaries(
        st.text("ab0-", min_size=1, max_size=5).map(lambda label: label + ".test"),
        st.lists(st.ip_addresses().map(str), min_size=1, max_size=3).map(tuple),
    )
)
def test_a_written_hosts_file_is_read_back(addresses: dict[str, tuple[str, ...]]) -> None:
    assert parse_hosts(hosts_text(addresses), "x") == addresses


def test_a_hosts_file_is_read_as_the_system_reads_it(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("# all\n\n127.0.0.2\tA.test  www.a.test.\n::1 a.test # again\n")
    assert read_hosts(file) == {"a.test": ("127.0.0.2", "::1"), "www.a.test": ("127.0.0.2",)}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("a.test 127.0.0.2", "line 1: 'a.test' is not an IP address"), ("\n::1 # x", "line 2: no host name")],
)
def test_an_invalid_line_is_named(text: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        parse_hosts(text, "hosts")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        read_hosts(tmp_path / "nowhere")
