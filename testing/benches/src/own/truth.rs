//! The cost of an invocation, and whether memory and CPU agree with the child's own figures.

use std::ffi::OsString;

use heaptoll_experiment::interrupt::Interrupt;
use heaptoll_experiment::launch::{self, Finished, Invocation};
use heaptoll_experiment::own_cost;
use heaptoll_experiment::places::Places;
use heaptoll_statistics::median;

use crate::Error;
use crate::table::print_figure;

/// Rounds of each measurement.
const ROUNDS: usize = 20;

/// Time and memory above a bare fork and exec.
pub fn own_cost() -> Result<(), Error> {
    let places = Places::find()?;
    let launcher = places.launcher();
    let runs: Result<Vec<Option<(f64, i64)>>, _> =
        (0..5).map(|_| own_cost::measure(&launcher, &Interrupt::default())).collect();
    let costs: Vec<(f64, i64)> = runs?.into_iter().flatten().collect();
    let ms = median(&costs.iter().map(|cost| cost.0 * 1e3).collect::<Vec<_>>());
    let kib = median(&costs.iter().map(|cost| cost.1 as f64).collect::<Vec<_>>());
    print_figure("own time above fork, exec and wait", format!("{ms:.2} ms"), "<= 1 ms", ms <= 1.0);
    print_figure(
        "own share in the reported peak memory",
        format!("{kib:.0} KiB"),
        "<= 1024 KiB",
        kib <= 1024.0,
    );
    let (private, peak) = launcher_memory(&places)?
        .ok_or_else(|| Error::Unexpected("the launcher's own memory could not be read".into()))?;
    print_figure(
        "the launcher's own pages, shared ones apart",
        format!("{private} KiB ({peak} resident)"),
        "<= 1024 KiB",
        private <= 1024,
    );
    Ok(())
}

/// Memory of the launcher itself while the program runs, KiB: pages that no other process maps, which are what one more
/// launcher costs the machine, and the peak of its resident set.
fn launcher_memory(places: &Places) -> Result<Option<(u64, u64)>, Error> {
    // The launcher is the parent of what it runs.
    let words = ["sh", "-c", "exec cat /proc/$PPID/status /proc/$PPID/smaps_rollup"];
    let invocation = Invocation { command: words.map(Into::into).to_vec(), ..Invocation::default() };
    let finished = launch::run(&places.launcher(), &invocation, &Interrupt::default())?;
    let output = String::from_utf8_lossy(&finished.output_head).into_owned();
    let kib = |label: &str| -> Option<u64> {
        let line = output.lines().find_map(|line| line.strip_prefix(label))?;
        line.split_ascii_whitespace().next()?.parse().ok()
    };
    let read = || Some((kib("Private_Clean:")? + kib("Private_Dirty:")?, kib("VmHWM:")?));
    Ok(read())
}

/// Runs this program as a child with these arguments and returns what it printed, and what was measured.
fn child(places: &Places, words: &[String]) -> Result<(f64, Finished), Error> {
    let exe = std::env::current_exe().map_err(Error::system("own path"))?;
    let mut command = vec![exe.into_os_string()];
    command.extend(words.iter().map(OsString::from));
    let invocation = Invocation { command, ..Invocation::default() };
    let finished = launch::run(&places.launcher(), &invocation, &Interrupt::default())?;
    let output = String::from_utf8_lossy(&finished.output_head).trim().to_string();
    match output.parse::<f64>() {
        Ok(number) => Ok((number, finished)),
        Err(_) => {
            Err(Error::Unexpected(format!("{words:?} printed `{output}` and ended {:?}", finished.ended)))
        }
    }
}

/// Memory and CPU against the children's own figures.
pub fn truth() -> Result<(), Error> {
    let places = Places::find()?;
    // The case that popular tools get wrong: the measuring process itself is large.
    let fat = vec![1u8; 500 << 20];
    for mib in [1usize, 10, 100] {
        let mut worst = 0.0f64;
        for _ in 0..ROUNDS {
            let (own_kib, finished) = child(&places, &["touch".into(), mib.to_string()])?;
            let error = finished.usage.peak_rss_kib as f64 - own_kib;
            if error.abs() > worst.abs() {
                worst = error;
            }
        }
        print_figure(
            &format!("peak of a {mib} MiB child, heaptoll at 500 MB, worst of {ROUNDS}"),
            format!("{worst:+.0} KiB"),
            "within 256 KiB",
            worst.abs() <= 256.0,
        );
    }
    let peak = |mib: usize| -> Result<f64, Error> {
        let peaks: Result<Vec<f64>, Error> = (0..ROUNDS)
            .map(|_| Ok(child(&places, &["touch".into(), mib.to_string()])?.1.usage.peak_rss_kib as f64))
            .collect();
        Ok(median(&peaks?))
    };
    let empty = peak(0)?;
    for mib in [10usize, 100] {
        let read_back = (peak(mib)? - empty) / 1024.0;
        let off = (read_back / mib as f64 - 1.0).abs();
        print_figure(
            &format!("{mib} MiB allocated are read back as"),
            format!("{read_back:.2} MiB"),
            "within 3 %",
            off <= 0.03,
        );
    }
    std::hint::black_box(&fat);
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let (own_ns, finished) = child(&places, &["spin".into(), "300".into()])?;
        let measured = (finished.usage.user_us + finished.usage.system_us) as f64 * 1e3;
        ratios.push(measured / own_ns);
    }
    let (low, high) = ratios.iter().fold((f64::MAX, f64::MIN), |(l, h), r| (l.min(*r), h.max(*r)));
    print_figure(
        &format!("CPU of a 0.3 s spin over its own count, {ROUNDS} runs"),
        format!("{low:.4} to {high:.4}"),
        "within 1 %",
        low >= 0.99 && high <= 1.01,
    );
    Ok(())
}
