use heaptoll_replay::flatten::*;
use heaptoll_replay::program::Order;
use heaptoll_replay::source::*;
use heaptoll_replay::word::*;
fn main() {
    let p = std::env::args().nth(1).unwrap();
    let s = FileSource::open(p.as_ref()).unwrap();
    let prog = flatten(vec![Box::new(s)], &Flattening { order: Order::Exact, ..Default::default() }).unwrap();
    for (t, e) in prog.index.streams.iter().enumerate() {
        let words = prog.words(e).unwrap();
        let mut rest = &words[..];
        let (mut first, mut last, mut n) = (None, 0, 0u64);
        let mut end = None;
        let mut starts = vec![];
        while let Some((o, k)) = Operation::read(rest) {
            rest = &rest[k..];
            end = Some(o);
            match o {
                Operation::Turn { run } => {
                    first.get_or_insert(run);
                    last = run;
                }
                Operation::Start { thread } => starts.push((thread, last)),
                _ => n += 1,
            }
        }
        println!("{t}: first run {first:?} last {last} calls {n} ends {end:?} starts {starts:?}");
    }
}
