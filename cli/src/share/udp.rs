//! Sockets that hold a burst.
//!
//! A data channel sends in bursts of hundreds of datagrams. With the system's usual receive buffer
//! (about 90 of them) some are lost, and each loss at the end of a burst costs a second.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use webrtc::runtime::{
    AsyncInterval, AsyncTcpListener, AsyncTcpStream, AsyncUdpSocket, JoinHandle, Runtime,
    TokioRuntime,
};

/// What is asked for; the system may give less.
const RECEIVE_BYTES: usize = 4 * 1024 * 1024;

type Work<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Tokio, but for the size of that buffer.
#[derive(Debug)]
pub struct WideSockets;

impl Runtime for WideSockets {
    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        // Less than asked for is slow, not wrong.
        if let Err(error) = socket2::SockRef::from(&socket).set_recv_buffer_size(RECEIVE_BYTES) {
            eprintln!("the receive buffer stays small: {error}");
        }
        TokioRuntime.wrap_udp_socket(socket)
    }

    fn spawn(&self, future: Work<'static, ()>) -> Box<dyn JoinHandle> {
        TokioRuntime.spawn(future)
    }

    fn spawn_reactor(&self, size: usize, future: Work<'static, ()>) -> Box<dyn JoinHandle> {
        TokioRuntime.spawn_reactor(size, future)
    }

    fn wrap_tcp_listener(
        &self,
        listener: std::net::TcpListener,
    ) -> io::Result<Arc<dyn AsyncTcpListener>> {
        TokioRuntime.wrap_tcp_listener(listener)
    }

    fn connect_tcp<'a>(
        &'a self,
        remote: SocketAddr,
    ) -> Work<'a, io::Result<Arc<dyn AsyncTcpStream>>> {
        TokioRuntime.connect_tcp(remote)
    }

    fn resolve_host<'a>(&'a self, host: &'a str) -> Work<'a, io::Result<Vec<SocketAddr>>> {
        TokioRuntime.resolve_host(host)
    }

    fn sleep(&self, duration: Duration) -> Work<'static, ()> {
        TokioRuntime.sleep(duration)
    }

    fn interval(&self, period: Duration) -> Box<dyn AsyncInterval> {
        TokioRuntime.interval(period)
    }

    fn block_on(&self, future: Pin<Box<dyn Future<Output = ()> + '_>>) {
        TokioRuntime.block_on(future);
    }

    fn name(&self) -> &'static str {
        "tokio"
    }
}

/// The address by which others reach this machine, without asking anybody: the one from which it
/// would send to the documentation networks (RFC 5737, RFC 3849). Nothing is sent.
pub fn own_address() -> Option<IpAddr> {
    outgoing("0.0.0.0:0", (Ipv4Addr::new(192, 0, 2, 1), 9).into())
}

/// What to listen on: every interface, or loopback where there is nothing else.
pub fn listen_on(chosen: Option<IpAddr>) -> Vec<SocketAddr> {
    if let Some(address) = chosen {
        return vec![SocketAddr::new(address, 0)];
    }
    let v6 = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
    let mut addresses: Vec<SocketAddr> = Vec::new();
    if own_address().is_some() {
        addresses.push((Ipv4Addr::UNSPECIFIED, 0).into());
    }
    if outgoing("[::]:0", (v6, 9).into()).is_some() {
        addresses.push((Ipv6Addr::UNSPECIFIED, 0).into());
    }
    if addresses.is_empty() {
        addresses.push((Ipv4Addr::LOCALHOST, 0).into());
    }
    addresses
}

fn outgoing(from: &str, to: SocketAddr) -> Option<IpAddr> {
    let socket = UdpSocket::bind(from).ok()?;
    socket.connect(to).ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback() && !address.is_unspecified()).then_some(address)
}
