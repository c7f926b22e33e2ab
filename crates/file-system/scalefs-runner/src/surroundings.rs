//! What surrounds a test's calls and no model knows of: how its names become paths, whose processes make its calls, and
//! what cores have done since their maintenance.
//!
//! ```text
//! names=long   a test's name "a" becomes the longest that there is: ~~~~...~~~a-7.
//! depth=3      it lies two directories further down: level1/level2/a-7.
//! users=2      call i is made by user i modulo 2, who may do everything and owns nothing but what he has made
//! warm=64      cores have made 63 rounds of other calls; in other orders of the calls any number up to that
//! ```

use runner::place::PROCESS_LIMIT;
use scalefs::Credentials;

/// The process that holds what the set-up has under construction; those of tests come before, those of users behind.
pub const SETUP_PROCESS: usize = PROCESS_LIMIT;

/// Longest name of a file (Linux: NAME_MAX).
const LONGEST_NAME_BYTES: usize = 255;
/// Longest name that a test can give.
const LONGEST_TEXT_BYTES: usize = 200;
/// Stands in front of names that are made as long as can be.
const PADDING: char = '~';
/// Users that a test can speak of beside the superuser.
pub const USERS_OF_TESTS: usize = 12;
/// The first of the users; none of them is the superuser.
const FIRST_USER: u32 = 1000;

/// How tests are surrounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Surroundings {
    /// Before a window each core makes so many rounds of calls less one, or fewer; none if it is 1.
    pub warm: usize,
    /// Whether names are as long as can be.
    pub long_names: bool,
    /// Components of a path, from the working directory on.
    pub depth: usize,
    /// Users who make calls; the superuser makes all of them if it is 1.
    pub users: usize,
}

impl Default for Surroundings {
    /// Nothing that a test does not ask for.
    fn default() -> Self {
        Self { warm: 1, long_names: false, depth: 1, users: 1 }
    }
}

impl Surroundings {
    /// The last component of the path for a test's name; `suffix` tells windows apart.
    ///
    /// # Errors
    /// It is no name of a file in one directory, or one that could not be told from a longer one.
    pub fn file_name(&self, text: &str, suffix: &str) -> Result<String, String> {
        let text = check_name(text)?;
        if !self.long_names {
            return Ok(format!("{text}{suffix}"));
        }
        if text.starts_with(PADDING) {
            return Err(format!("{text:?} begins as long names do: expected none with names=long"));
        }
        let missing = LONGEST_NAME_BYTES.saturating_sub(text.len() + suffix.len());
        Ok(format!("{}{text}{suffix}", PADDING.to_string().repeat(missing)))
    }

    /// What the test calls a file, from the name that [`Surroundings::file_name`] made without its suffix.
    pub fn text_of(name: &[u8], long_names: bool) -> &[u8] {
        let padding = name.iter().take_while(|byte| long_names && **byte == PADDING as u8).count();
        &name[padding..]
    }

    /// Directories between one of a test and its names, each below the one before: `["/level1", "/level1/level2"]`.
    pub fn levels(&self) -> Vec<String> {
        let mut path = String::new();
        (1..self.depth)
            .map(|level| {
                path.push_str(&format!("/level{level}"));
                path.clone()
            })
            .collect()
    }

    /// Whether users make the calls whom permission bits bind.
    pub fn has_users(&self) -> bool {
        self.users > 1
    }

    /// Who each process is: those of tests, that of the set-up, and behind it one for each user.
    pub fn credentials(&self) -> Vec<Credentials> {
        let user = |number: usize| {
            let number = FIRST_USER + (number % self.users) as u32;
            Credentials::new(number, number, &[]).unwrap_or(Credentials::SUPERUSER)
        };
        let is_superuser = |process: usize| !self.has_users() || process == SETUP_PROCESS;
        let tests = (0..=SETUP_PROCESS)
            .map(|process| if is_superuser(process) { Credentials::SUPERUSER } else { user(process) });
        let of_users = (0..self.users).filter(|_| self.has_users()).map(user);
        tests.chain(of_users).chain((1..=USERS_OF_TESTS).map(Surroundings::user_of_tests)).collect()
    }

    /// A user whom a test speaks of by this number.
    fn user_of_tests(number: usize) -> Credentials {
        let number = FIRST_USER + number as u32;
        Credentials::new(number, number, &[]).unwrap_or(Credentials::SUPERUSER)
    }

    /// The process of a user whom a test speaks of by this number, from 1.
    pub fn process_of_user(&self, number: usize) -> usize {
        let before = if self.has_users() { self.users } else { 0 };
        SETUP_PROCESS + before + number
    }

    /// The process of the user who makes the calls on names of one core, if they are not those of the test's process.
    pub fn caller(&self, core: usize) -> Option<usize> {
        self.has_users().then(|| SETUP_PROCESS + 1 + core % self.users)
    }

    /// Rounds of calls before a window of a test: the most, if its calls are made as they stand, and any number up to that in
    /// another order. All windows of an order have equally many, since only what shows in most of them counts.
    pub fn rounds(&self, order: &[u8], test: u64) -> usize {
        if order.is_sorted() { self.warm - 1 } else { (test % self.warm as u64) as usize }
    }
}

/// A name that a test gives.
///
/// # Errors
/// It is none of a file in one directory.
pub fn check_name(text: &str) -> Result<&str, String> {
    if text.is_empty() || text.contains(['/', '\0']) || text.len() > LONGEST_TEXT_BYTES {
        return Err(format!("{text:?} is not a name of a file in one directory"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Surroundings = Surroundings { warm: 1, long_names: true, depth: 3, users: 2 };

    #[test]
    fn long_names_are_the_longest_and_found_again() {
        for text in ["a", "n0", &"x".repeat(LONGEST_TEXT_BYTES)] {
            let name = LONG.file_name(text, "-17.").unwrap();
            assert_eq!(name.len(), LONGEST_NAME_BYTES);
            let shown = name.as_bytes().strip_suffix(b"-17.").unwrap();
            assert_eq!(Surroundings::text_of(shown, true), text.as_bytes());
        }
        assert!(LONG.file_name("~a", "-17.").unwrap_err().contains("names=long"));
        assert_eq!(Surroundings::default().file_name("~a", "-17."), Ok("~a-17.".to_owned()));
        assert_eq!(Surroundings::text_of(b"~a", false), b"~a");
        for text in ["", "a/b", "\0", &"x".repeat(LONGEST_TEXT_BYTES + 1)] {
            assert!(Surroundings::default().file_name(text, "").unwrap_err().contains("is not a name"), "{text}");
        }
    }

    #[test]
    fn levels_lie_below_each_other() {
        assert_eq!(LONG.levels(), ["/level1", "/level1/level2"]);
        assert!(Surroundings::default().levels().is_empty());
    }

    #[test]
    fn users_are_nobody_special_and_the_set_up_is() {
        let users: Vec<u32> = LONG.credentials().iter().map(|credentials| credentials.user).collect();
        assert_eq!(users[..9], [1000, 1001, 1000, 1001, 1000, 1001, 0, 1000, 1001]);
        assert_eq!(users[LONG.process_of_user(1)..], (1001..=1012).collect::<Vec<u32>>());
        assert_eq!([0, 1, 2].map(|core| LONG.caller(core)), [Some(7), Some(8), Some(7)]);
        let usual = Surroundings::default();
        assert!(usual.credentials()[..=SETUP_PROCESS].iter().all(Credentials::is_superuser));
        assert_eq!((usual.process_of_user(1), usual.caller(1)), (SETUP_PROCESS + 1, None));
        assert_eq!(usual.credentials().len(), usual.process_of_user(USERS_OF_TESTS) + 1);
    }

    #[test]
    fn the_first_order_has_all_rounds_and_the_others_any() {
        let warm = Surroundings { warm: 64, ..Surroundings::default() };
        let all: std::collections::BTreeSet<usize> = (0..1_000).map(|test| warm.rounds(&[1, 0], test)).collect();
        assert_eq!(all, (0..64).collect());
        assert!((0..1_000).all(|test| warm.rounds(&[0, 1], test) == 63));
        assert!((0..1_000).all(|test| Surroundings::default().rounds(&[1, 0], test) == 0));
    }
}
