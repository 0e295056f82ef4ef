//! What the laboratory answers to the product that hands a command line over to it.

use crate::fixture::{CommandOutput, Fixture};

#[test]
fn a_product_of_another_version_is_refused_with_both_and_what_is_measured_sees_none() {
    let fixture = Fixture::new();
    let printed = fixture.heaptoll(&["-V"]).exits(0).out;
    let own = printed.trim().strip_prefix("heaptoll-lab ").expect("it names itself");
    let of_version = |version: &str| -> CommandOutput {
        let program = ["--", "sh", "-c", "test -z \"$HEAPTOLL_PRODUCT\""];
        let mut command = fixture.command(&["run", "-m", "glibc", "-n", "1", "--warmup", "0"]);
        command.args(program).env("HEAPTOLL_PRODUCT", version).output().expect("heaptoll-lab starts").into()
    };
    of_version("9.9.9 (abc)").exits(2).complains(&["heaptoll is 9.9.9 (abc)", "heaptoll-lab, is", own]);
    of_version(own).exits(0);
}

/// Before, the version of `lab` was that of `heaptoll-lab-lab`.
#[test]
fn the_laboratory_has_one_name_where_its_version_is_printed() {
    let fixture = Fixture::new();
    let printed = fixture.heaptoll(&["-V"]).exits(0).out;
    assert_eq!(fixture.heaptoll(&["lab", "-V"]).exits(0).out, printed);
    fixture.heaptoll(&["lab", "study", "-V"]).exits(0).shows(&["heaptoll-lab-study "]);
}
