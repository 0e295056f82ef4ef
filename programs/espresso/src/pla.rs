//! The part of the Berkeley PLA format that the catalog's inputs use: `.i`, `.o` and terms of an ON-set.

/// A Boolean function with several outputs as a list of product terms.
#[derive(Debug)]
pub struct Pla {
    /// Variables.
    pub inputs: usize,
    /// Functions.
    pub outputs: usize,
    /// Each term's inputs (0, 1, or 2 for either) and outputs (1 where the term belongs to the function).
    pub terms: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Pla {
    /// Reads a PLA. The error names the line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut pla = Pla { inputs: 0, outputs: 0, terms: Vec::new() };
        for (at, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            let words: Vec<&str> = line.split_whitespace().collect();
            let problem = |what: &str| format!("line {}: {what}: `{line}`", at + 1);
            match words.as_slice() {
                [] => {}
                [".i" | ".o", _] if !pla.terms.is_empty() => {
                    return Err(problem("this comes before the terms"));
                }
                [".i", count] => pla.inputs = count.parse().map_err(|_| problem("not a number"))?,
                [".o", count] => pla.outputs = count.parse().map_err(|_| problem("not a number"))?,
                [".p", _] | [".type", "f"] => {}
                [".e" | ".end"] => break,
                [inputs, outputs] if !inputs.starts_with('.') => {
                    if inputs.len() != pla.inputs || outputs.len() != pla.outputs {
                        return Err(problem("the term does not fit `.i` and `.o`"));
                    }
                    let inputs = inputs.bytes().map(|byte| match byte {
                        b'0' | b'1' => Ok(byte - b'0'),
                        b'-' => Ok(2),
                        _ => Err(problem("an input is 0, 1 or -")),
                    });
                    let outputs = outputs.bytes().map(|byte| match byte {
                        b'0' | b'~' => Ok(0),
                        b'1' => Ok(1),
                        _ => Err(problem("an output is 0 or 1")),
                    });
                    pla.terms.push((inputs.collect::<Result<_, _>>()?, outputs.collect::<Result<_, _>>()?));
                }
                _ => return Err(problem("not understood; there are .i, .o, .p, .type f, terms and .e")),
            }
        }
        if pla.terms.is_empty() {
            return Err("there are no terms".to_owned());
        }
        Ok(pla)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_function_is_read() {
        let pla = Pla::parse(".i 3\n.o 2\n.p 2\n.type f\n01- 10\n--1 11 # both\n.e\n").unwrap();
        assert_eq!((pla.inputs, pla.outputs), (3, 2));
        assert_eq!(pla.terms, [(vec![0, 1, 2], vec![1, 0]), (vec![2, 2, 1], vec![1, 1])]);
    }

    #[test]
    fn an_error_names_the_line() {
        for (text, line) in [
            (".i 2\n.o 1\n012 1\n", "line 3"),
            (".i x\n", "line 1"),
            (".i 1\n.o 1\nx 1\n", "line 3"),
            (".i 1\n.o 1\n.kiss\n", "line 3"),
            (".i 1\n.o 1\n0 1\n.i 2\n00 1\n", "line 4"),
        ] {
            let error = Pla::parse(text).unwrap_err();
            assert!(error.starts_with(line), "{error}");
        }
        assert!(Pla::parse(".i 1\n.o 1\n.e\n").is_err());
    }
}
