//! A page in Chromium that a script of a test drives.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// What a script in the page found, whose body fills `found`, and every line of the browser's console.
pub fn drive(browser: &Path, page: &str, script: &str, width: u32) -> (Value, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let driver = format!(
        r#"<script>addEventListener("load", async () => {{
  const found = {{}};
  try {{ {script} }} catch (error) {{ found.error = error.stack; }}
  const result = document.createElement("pre");
  result.id = "found";
  result.textContent = JSON.stringify(found, (_, value) => typeof value === "bigint" ? value.toString() : value).replaceAll("<", "\\u003c").replaceAll(">", "\\u003e").replaceAll("&", "\\u0026");
  document.body.append(result);
}});</script></body>"#
    );
    std::fs::write(folder.path().join("page.html"), page.replace("</body>", &driver)).unwrap();
    let outer = format!(
        "<!DOCTYPE html><body style='margin:0'><iframe src=page.html style='border:0;width:{width}px;height:900px'></iframe><script>
        const frame = document.querySelector('iframe');
        (async () => {{
          while (!frame.contentDocument?.getElementById('found')) await new Promise((done) => setTimeout(done, 50));
          const found = frame.contentDocument.getElementById('found');
          frame.remove();
          document.body.append(found);
        }})();</script>"
    );
    std::fs::write(folder.path().join("outer.html"), outer).unwrap();
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage"])
        .args([
            "--disable-background-networking",
            "--allow-file-access-from-files",
            "--enable-logging=stderr",
        ])
        .args(["--v=0", "--virtual-time-budget=120000", "--window-size=1400,1000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .arg(format!("file://{}", folder.path().join("outer.html").display()))
        .output()
        .unwrap();
    let (dom, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let console = log.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect();
    let found = dom.split_once("<pre id=\"found\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let found: Value = serde_json::from_str(found.unwrap_or_else(|| panic!("{log}")).0).unwrap();
    assert_eq!(found["error"], Value::Null, "{found}");
    (found, console)
}
