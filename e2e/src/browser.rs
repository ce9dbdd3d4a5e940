//! A browser under a WebDriver, with a profile that may outlive it.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use fantoccini::{Client, ClientBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::engine::Engine;
use crate::error::{E2eError, Result};
use crate::process::{Guard, free_port, kill_users_of};
use crate::screen::Screen;

/// A slow machine starts a browser within this.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// What a browser remembers: storage, service workers, caches.
pub struct Profile(TempDir);

/// A running browser. It ends when this is dropped, by a panic too.
pub struct Browser {
    pub client: Client,
    pub engine: Engine,
    session: String,
    port: u16,
    profile: PathBuf,
    _driver: Guard,
    /// Ends after the driver, and with it whatever still draws on it.
    _screen: Option<Screen>,
}

impl Profile {
    pub fn fresh() -> Result<Profile> {
        let temp = std::env::temp_dir();
        let folder = tempfile::Builder::new()
            .prefix("tinyrustlm-profile-")
            .tempdir()
            .map_err(E2eError::io(&temp))?;
        Ok(Profile(folder))
    }

    /// The folder, which every process of the browser names or descends from one that does.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Browser {
    /// Starts the chosen browser on a profile, which no other browser uses at that time.
    pub async fn start(profile: &Profile) -> Result<Browser> {
        Browser::start_engine(Engine::chosen(), profile).await
    }

    /// Starts a certain browser.
    pub async fn start_engine(engine: Engine, profile: &Profile) -> Result<Browser> {
        let screen = engine.screen()?;
        let port = free_port()?;
        let mut command = engine.driver(port);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        if let Some(screen) = &screen {
            command.env("DISPLAY", screen.name());
        }
        let driver = Guard::start(&mut command)?;
        wait_for_port(port)?;

        let mut builder = ClientBuilder::new(HttpConnector::new());
        builder.capabilities(engine.capabilities(profile.0.path())?);
        let connected = builder.connect(&format!("http://127.0.0.1:{port}")).await;
        let client = connected.map_err(|error| {
            kill_users_of(profile.0.path());
            E2eError::Session(Box::new(error))
        })?;
        let session = client.session_id().await?.unwrap_or_default();
        Ok(Browser {
            client,
            engine,
            session,
            port,
            profile: profile.0.path().to_owned(),
            _driver: driver,
            _screen: screen,
        })
    }

    /// Where the driver listens.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The driver's name for this browser.
    pub(crate) fn session(&self) -> &str {
        &self.session
    }

    /// Ends the browser as a crash would: it gets no time to write anything.
    pub fn crash(self) {
        kill_users_of(&self.profile);
    }

    /// Runs `script` in the page, as the body of an async function of `args`.
    ///
    /// # Errors
    /// It throws, or the browser is gone.
    pub async fn js(&self, script: &str, args: &[Value]) -> Result<Value> {
        let wrapped = format!(
            "const answer = arguments[arguments.length - 1];
             const args = [...arguments].slice(0, -1);
             (async () => {{ {script} }})().then(
                 (value) => answer({{ value: value ?? null }}),
                 (error) => answer({{ error: `${{error}}\n${{error?.stack ?? ''}}` }}));"
        );
        let answer = self.client.execute_async(&wrapped, args.to_vec()).await?;
        match answer["error"].as_str() {
            Some(words) => Err(E2eError::Script {
                words: words.to_owned(),
            }),
            None => Ok(answer["value"].clone()),
        }
    }

    /// Asks `probe` (the body of an async function) until it answers something that is true.
    pub async fn wait(&self, what: &str, after: Duration, probe: &str) -> Result<Value> {
        let start = Instant::now();
        loop {
            let value = self.js(probe, &[]).await?;
            let is_true = !matches!(value, Value::Null | Value::Bool(false)) && value != json!("");
            if is_true {
                return Ok(value);
            }
            if start.elapsed() > after {
                return Err(E2eError::Timeout {
                    what: what.to_owned(),
                    after,
                    seen: self.seen().await,
                });
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// One call of Chromium's own protocol, for what WebDriver cannot ask.
    pub fn chromium(&self, command: &str, parameters: &Value) -> Result<()> {
        let host = format!("127.0.0.1:{}", self.port);
        let asked = || -> std::io::Result<String> {
            let body = json!({ "cmd": command, "params": parameters }).to_string();
            let mut stream = TcpStream::connect(&host)?;
            write!(
                stream,
                "POST /session/{}/goog/cdp/execute HTTP/1.1\r\nHost: {host}\r\n\
                 Content-Type: application/json\r\nConnection: close\r\n\
                 Content-Length: {}\r\n\r\n{body}",
                self.session,
                body.len()
            )?;
            // The driver keeps the connection open; its first words say how it went.
            let mut first = [0; 64];
            let read = stream.read(&mut first)?;
            Ok(String::from_utf8_lossy(&first[..read]).into_owned())
        };
        let answer = asked().map_err(E2eError::net(&host))?;
        match answer.starts_with("HTTP/1.1 200") {
            true => Ok(()),
            false => Err(E2eError::Script { words: answer }),
        }
    }

    /// What a person would see now, for a failing test's message.
    async fn seen(&self) -> String {
        let script = "return `${location} [${document.documentElement.dataset.state}] ` +
                      document.body.innerText.slice(0, 2000)";
        match self.js(script, &[]).await {
            Ok(text) => text.as_str().unwrap_or_default().to_owned(),
            Err(error) => error.to_string(),
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // In good order first: the driver closes the browser, which writes its profile. What is
        // still there after that is killed.
        drop(end_session(self.port, &self.session));
        kill_users_of(&self.profile);
    }
}

/// Without the async client: a test that panics has no runtime to wait in.
fn end_session(port: u16, session: &str) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    write!(
        stream,
        "DELETE /session/{session} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\
         Connection: close\r\nContent-Length: 0\r\n\r\n"
    )?;
    std::io::copy(&mut stream, &mut std::io::sink()).map(drop)
}

fn wait_for_port(port: u16) -> Result<()> {
    let host = format!("127.0.0.1:{port}");
    let start = Instant::now();
    let address = host.to_socket_addrs().map_err(E2eError::net(&host))?.next();
    loop {
        let tried = address.map(|address| TcpStream::connect_timeout(&address, START_TIMEOUT));
        match tried {
            Some(Ok(_)) => return Ok(()),
            Some(Err(source)) if start.elapsed() > START_TIMEOUT => {
                return Err(E2eError::Net {
                    address: host,
                    source,
                });
            }
            _ => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}
