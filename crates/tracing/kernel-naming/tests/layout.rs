//! The layout's text: what is written is read back, and nothing else is accepted.

mod support;

use kernel_naming::GuestLayout;
use proptest::prelude::*;
use support::guest::layout;

fn message(text: &str) -> String {
    GuestLayout::parse(text).expect_err("refused").to_string()
}

#[test]
fn survives_its_text() {
    let layout = layout();
    let text = layout.to_text();
    assert_eq!(GuestLayout::parse(&text), Ok(layout));
    assert!(text.starts_with("layout_version 0x4\n"));
    assert!(text.contains("\nedge 0x3 pointer 0x20 0x4 0x0 if 0x10 0xffffffffffffffff 0xffffffff80100700\n"));
    assert!(text.ends_with("region mount_hashtable 0xffffffff80100520 mask 0xffffffff80100528 0x8\n"));
}

#[test]
fn says_which_line_is_wrong() {
    let text = layout().to_text();
    let replaced = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        message(&text.replacen(from, to, 1))
    };
    assert_eq!(message(""), "line 0 of the layout: the text ends without `layout_version`");
    assert_eq!(message("page_size 0x40\n"), "line 1 of the layout: expected `layout_version`, found \"page_size\"");
    assert!(replaced("layout_version 0x4", "layout_version 0x1").contains("expected layout version 4, found 1"));
    assert!(replaced("page_size 0x50", "page_size 80").contains("expected a number from 0x0"));
    assert!(replaced("page_size 0x50", "page_size 0x0").contains("expected `page_size` between 1 and"));
    assert!(replaced("page_size 0x50", "page_size 0x50 0x1").contains("expected the line to end"));
    assert!(replaced("page_size 0x50", "page_flags 0x8").contains("`page_flags` stands here a second time"));
    assert!(replaced("page_size 0x50", "page_sighs 0x50").contains("expected a known key, found \"page_sighs\""));
    assert!(replaced("page_size 0x50\n", "").contains("the text ends without `page_size`"));
    assert!(replaced("type fdtable 0x38", "type fdtable").contains("the line ends too early"));
    assert!(replaced("type fdtable 0x38\n", "").contains("type 7 is referred to, but there are 7"));
    assert!(replaced("edge 0x0 pointer", "edge 0x0 jump").contains("expected the kind of an edge, found \"jump\""));
    assert!(replaced(" if ", " unless ").contains("expected `if` or the end of the line"));
    assert!(replaced("root percpu", "root list:x").contains("expected a small number behind \"list\""));
    assert!(replaced(" mask ", " size ").contains("expected `mask` or `shift`"));
    assert!(
        replaced("type fdtable", &format!("type {}", "n".repeat(33))).contains("expected a name of at most 32 bytes")
    );
}

proptest! {
    #[test]
    fn cut_off_text_is_an_error(length in 0..layout().to_text().len() - 1) {
        let text = layout().to_text();
        // Cut between two items of the graph it is still a layout, of a smaller graph; within a line it is none.
        if let Ok(smaller) = GuestLayout::parse(&text[..length]) {
            prop_assert_eq!(smaller.numbers, layout().numbers);
        }
    }

    #[test]
    fn damaged_text_is_an_error_or_a_layout_that_survives_its_text(
        damage in prop::collection::vec((0..layout().to_text().len(), 0x20u8..0x7f), 1..4),
    ) {
        let mut bytes = layout().to_text().into_bytes();
        for (at, value) in damage {
            bytes[at] = value;
        }
        let text = String::from_utf8(bytes).expect("ASCII");
        if let Ok(layout) = GuestLayout::parse(&text) {
            prop_assert_eq!(GuestLayout::parse(&layout.to_text()), Ok(layout));
        }
    }

    #[test]
    fn any_text_gives_a_layout_or_an_error(text in "\\PC{0,300}") {
        prop_assert!(GuestLayout::parse(&text).is_err());
    }
}
