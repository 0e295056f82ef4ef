//! The smallest heap in which a program completes (Sareen and Blackburn 2022, §4).
