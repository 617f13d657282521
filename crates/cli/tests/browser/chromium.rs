//! A headless Chromium, driven by the DevTools protocol over two pipes: messages are JSON, each with a zero
//! byte behind it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// The browser with one page.
pub struct Chromium {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    session: Option<String>,
    calls: u64,
    /// What it said without being asked.
    said: Vec<Value>,
    _profile: TempDir,
}

impl Chromium {
    /// Starts it.
    ///
    /// # Panics
    /// This machine has none.
    pub fn start() -> Chromium {
        let mut version = Command::new("chromium");
        let there = version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        let there = there.is_ok_and(|status| status.success());
        assert!(there, "no chromium; scripts/setup browser installs it");
        let profile = tempfile::tempdir().unwrap();
        let mut child = Command::new("sh")
            // It reads from 3 and writes to 4.
            .args(["-c", "exec chromium \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1", "sh"])
            .args(["--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu"])
            .args(["--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let from = BufReader::new(from);
        let mut browser = Chromium {
            child,
            to,
            from,
            session: None,
            calls: 0,
            said: Vec::new(),
            _profile: profile,
        };
        let made = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": made["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", attach);
        browser.session = session["sessionId"].as_str().map(String::from);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    fn read(&mut self) -> Value {
        let mut message = Vec::new();
        self.from.read_until(0, &mut message).unwrap();
        assert_eq!(message.pop(), Some(0), "the browser has gone");
        serde_json::from_slice(&message).unwrap()
    }

    /// Calls a method and returns its result.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.calls += 1;
        let mut message = json!({ "id": self.calls, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        let bytes = serde_json::to_vec(&message).unwrap();
        self.to.write_all(&[&bytes[..], b"\0"].concat()).unwrap();
        loop {
            let mut answer = self.read();
            if answer["id"] == self.calls {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].take();
            }
            self.said.push(answer);
        }
    }

    /// Opens a file in a window of these pixels.
    pub fn open(&mut self, file: &Path, width: u32, dark: bool) {
        let size =
            json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", size);
        let scheme = if dark { "dark" } else { "light" };
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
        self.said.clear();
        let file = fs::canonicalize(file).unwrap();
        self.call("Page.navigate", json!({ "url": format!("file://{}", file.display()) }));
        let patience = Instant::now() + Duration::from_secs(60);
        while self.value("document.readyState") != "complete" {
            assert!(Instant::now() < patience, "{} is never loaded", file.display());
        }
        // Plots are drawn in the frame after they are made.
        self.frame();
    }

    /// Waits for the next two frames.
    pub fn frame(&mut self) {
        self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))");
    }

    /// The value of an expression.
    pub fn value(&mut self, expression: &str) -> Value {
        let params =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let mut answer = self.call("Runtime.evaluate", params);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].take()
    }

    /// Moves, presses or releases the mouse.
    pub fn mouse(&mut self, what: &str, x: f64, y: f64) {
        let button = if what == "mouseMoved" { "none" } else { "left" };
        let params = json!({ "type": what, "x": x, "y": y, "button": button, "clickCount": 1 });
        self.call("Input.dispatchMouseEvent", params);
    }

    /// Presses a key. What the browser itself does at it, it does by its code.
    pub fn key(&mut self, key: &str) {
        let (code, text) = match key {
            "Tab" => (9, ""),
            "Enter" => (13, "\r"),
            "End" => (35, ""),
            "Home" => (36, ""),
            "ArrowRight" => (39, ""),
            _ => (0, ""),
        };
        for what in ["keyDown", "keyUp"] {
            let mut params = json!({ "type": what, "key": key });
            if code > 0 {
                params["windowsVirtualKeyCode"] = code.into();
            }
            if !text.is_empty() && what == "keyDown" {
                params["text"] = text.into();
            }
            self.call("Input.dispatchKeyEvent", params);
        }
    }

    /// What a developer would see in red or yellow, and each thing it loaded beside the file.
    pub fn complaints(&mut self) -> Vec<String> {
        self.frame();
        let bad = |event: &Value| {
            let params = &event["params"];
            match event["method"].as_str()? {
                "Runtime.exceptionThrown" => Some(params["exceptionDetails"].to_string()),
                "Runtime.consoleAPICalled" => Some(params["args"].to_string()),
                // The tests look at canvases, and are told that it is slow.
                "Log.entryAdded" => Some(params["entry"].to_string())
                    .filter(|entry| !entry.contains("willReadFrequently")),
                "Network.requestWillBeSent" => {
                    let url = params["request"]["url"].as_str()?;
                    let own = ["file:", "data:", "blob:"].iter().any(|own| url.starts_with(own));
                    (!own).then(|| format!("asks for {url}"))
                }
                _ => None,
            }
        };
        self.said.iter().filter_map(bad).collect()
    }

    /// The whole page as a picture.
    pub fn screenshot(&mut self, file: &Path) {
        let size = self
            .value("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]");
        let clip = json!({ "x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1 });
        let params = json!({ "captureBeyondViewport": true, "clip": clip });
        let answer = self.call("Page.captureScreenshot", params);
        fs::write(file, decoded(&answer)).unwrap();
    }

    /// The page as it is printed.
    pub fn pdf(&mut self) -> Vec<u8> {
        let params = json!({ "printBackground": true, "paperWidth": 8.27, "paperHeight": 11.69 });
        decoded(&self.call("Page.printToPDF", params))
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The bytes of an answer.
fn decoded(answer: &Value) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(answer["data"].as_str().unwrap()).unwrap()
}
