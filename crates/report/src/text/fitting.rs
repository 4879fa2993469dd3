//! A report in the lines of a screen: what matters least is left to `-v`.

use super::WIDTH;
use crate::columns;
use crate::numbers::{count, counted};
use crate::style::Paint;

/// The lines of a usual terminal, without that of the next prompt.
const SCREEN: usize = 23;

/// How much a piece of a report matters, from least to most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// Another line says it, too.
    Repeated,
    /// It explains a figure, or adds to what is shown.
    Note,
    /// A figure that few look for.
    Minor,
    /// A figure that many look for.
    Figure,
    /// What failed, where and why.
    Cause,
    /// The outcome, the plan, the main figures, and each doubt about them: shown whatever the room.
    Always,
}

/// The ranks that are shown as far as there is room, before and after the empty lines between sections of figures.
const BEFORE_GAPS: [Rank; 3] = [Rank::Cause, Rank::Figure, Rank::Minor];
const AFTER_GAPS: [Rank; 2] = [Rank::Note, Rank::Repeated];

/// Lines that are shown together or not at all.
#[derive(Debug)]
struct Piece {
    rank: Rank,
    text: String,
    height: usize,
    /// Whether it is a row of a table: those that are not shown are counted.
    is_row: bool,
}

impl Piece {
    fn new(rank: Rank, text: String) -> Self {
        Self { rank, height: text.split('\n').count(), text, is_row: false }
    }
}

/// A part of the report.
#[derive(Debug)]
pub(super) struct Section {
    /// Its name, for the line that says what `-v` shows.
    name: String,
    /// A first line that says nothing alone.
    heading: Option<String>,
    pieces: Vec<Piece>,
    /// What a row of it is: `request`.
    row: &'static str,
    /// Rows that are in files alone.
    in_files: usize,
    /// Whether an empty line follows whatever the room.
    is_apart: bool,
}

impl Section {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), heading: None, pieces: Vec::new(), row: "", in_files: 0, is_apart: false }
    }

    /// A section of lines that are all of one rank.
    pub(super) fn of(name: &str, rank: Rank, lines: impl IntoIterator<Item = String>) -> Self {
        let mut section = Self::new(name);
        section.add(rank, lines);
        section
    }

    /// The same below a first line that says nothing alone.
    pub(super) fn headed(self, heading: String) -> Self {
        Self { heading: Some(heading), ..self }
    }

    /// The same with a name for each row.
    pub(super) fn with_rows(self, row: &'static str) -> Self {
        Self { row, ..self }
    }

    /// The same with an empty line after it, whatever the room.
    pub(super) fn apart(self) -> Self {
        Self { is_apart: true, ..self }
    }

    /// Adds lines that are shown one by one.
    pub(super) fn add(&mut self, rank: Rank, lines: impl IntoIterator<Item = String>) {
        self.pieces.extend(lines.into_iter().map(|text| Piece::new(rank, text)));
    }

    /// Adds a row; what stands for those that are not shown counts them.
    pub(super) fn add_row(&mut self, rank: Rank, text: String) {
        self.pieces.push(Piece { is_row: true, ..Piece::new(rank, text) });
    }

    /// Adds lines that are shown together.
    pub(super) fn add_whole(&mut self, rank: Rank, lines: &[String]) {
        self.add(rank, (!lines.is_empty()).then(|| lines.join("\n")));
    }

    /// Says that files have more rows.
    pub(super) fn and_in_files(&mut self, rows: usize) {
        self.in_files = rows;
    }
}

/// A line of the report, or several.
enum Part<'a> {
    Empty,
    Heading(&'a str),
    Piece(&'a Piece),
    /// What stands for rows that are not shown.
    More(&'a Section, usize),
}

/// What of the report is shown.
struct Choice<'a> {
    sections: &'a [Section],
    shown: Vec<Vec<bool>>,
    has_gaps: bool,
}

impl<'a> Choice<'a> {
    fn new(sections: &'a [Section], has_gaps: bool, is_shown: impl Fn(&Piece) -> bool) -> Self {
        let shown = sections.iter().map(|section| section.pieces.iter().map(&is_shown).collect()).collect();
        Self { sections, shown, has_gaps }
    }

    fn parts(&self) -> Vec<Part<'a>> {
        let mut parts = Vec::new();
        let mut was_apart = false;
        for (section, shown) in self.sections.iter().zip(&self.shown) {
            if !shown.contains(&true) {
                continue;
            }
            if !parts.is_empty() && (was_apart || self.has_gaps) {
                parts.push(Part::Empty);
            }
            was_apart = section.is_apart;
            parts.extend(section.heading.as_deref().map(Part::Heading));
            let last_row = section.pieces.iter().rposition(|piece| piece.is_row);
            let mut hidden = 0;
            for (nth, (piece, is_shown)) in section.pieces.iter().zip(shown).enumerate() {
                parts.extend(is_shown.then_some(Part::Piece(piece)));
                hidden += usize::from(piece.is_row && !is_shown);
                if Some(nth) == last_row && section.in_files + hidden > 0 {
                    parts.push(Part::More(section, hidden));
                }
            }
        }
        parts
    }

    fn height(&self) -> usize {
        self.parts().iter().map(|part| if let Part::Piece(piece) = part { piece.height } else { 1 }).sum()
    }

    /// Shows the pieces of `rank` that fit into `room` lines, and an empty line between sections if `has_gaps`.
    fn add(&mut self, rank: Rank, room: usize) {
        for at in 0..self.sections.len() {
            for nth in 0..self.sections.get(at).map_or(0, |section| section.pieces.len()) {
                let is_of_rank = self
                    .sections
                    .get(at)
                    .and_then(|section| section.pieces.get(nth))
                    .is_some_and(|piece| piece.rank == rank);
                if is_of_rank {
                    self.show(at, nth, true);
                    let fits = self.height() <= room;
                    self.show(at, nth, fits);
                }
            }
        }
    }

    fn show(&mut self, at: usize, nth: usize, is_shown: bool) {
        if let Some(shown) = self.shown.get_mut(at).and_then(|shown| shown.get_mut(nth)) {
            *shown = is_shown;
        }
    }

    /// The names of sections of which nothing is shown, or of which a line about a failure is not.
    fn hidden(&self) -> impl Iterator<Item = &'a str> {
        let all = self.sections.iter().zip(&self.shown);
        let hidden = all.filter(|(section, shown)| {
            let mut pieces = section.pieces.iter().zip(*shown);
            let misses = pieces.any(|(piece, is_shown)| !is_shown && !piece.is_row && piece.rank >= Rank::Cause);
            misses || !section.pieces.is_empty() && !shown.contains(&true)
        });
        hidden.map(|(section, _)| section.name.as_str())
    }

    fn lines(&self, paint: Paint) -> Vec<String> {
        let line = |part: Part<'_>| match part {
            Part::Empty => String::new(),
            Part::Heading(text) => text.to_owned(),
            Part::Piece(piece) => piece.text.clone(),
            Part::More(section, hidden) => {
                let n = (section.in_files + hidden) as u64;
                let more = counted(n, &format!("more {}", section.row));
                paint.faint(match (hidden, section.in_files) {
                    (_, 0) => format!("  … and {more} (-v)"),
                    (0, _) => format!("  … and {} more, in -o FILE.json and -o FILE.csv", count(n)),
                    _ => format!("  … and {more} (-v, -o FILE.json)"),
                })
            }
        };
        self.parts().into_iter().map(line).collect()
    }
}

/// All lines of a report.
pub(super) fn whole(sections: &[Section], paint: Paint) -> Vec<String> {
    Choice::new(sections, true, |_| true).lines(paint)
}

/// The lines of a report that fit a screen: what matters most, in its order, and a line that names the rest. It is longer only
/// where [`Rank::Always`] is.
pub(super) fn fitted(sections: &[Section], paint: Paint) -> Vec<String> {
    for (least, has_gaps) in [(Rank::Repeated, true), (Rank::Note, true), (Rank::Note, false)] {
        let all = Choice::new(sections, has_gaps, |piece| piece.rank >= least);
        if all.height() <= SCREEN {
            return all.lines(paint);
        }
    }
    let mut choice = Choice::new(sections, false, |piece| piece.rank == Rank::Always);
    let room = SCREEN - 1;
    for rank in BEFORE_GAPS {
        choice.add(rank, room);
    }
    choice.has_gaps = true;
    choice.has_gaps = choice.height() <= room;
    for rank in AFTER_GAPS {
        choice.add(rank, room);
    }
    let mut lines = choice.lines(paint);
    let mut more = "More with -v".to_owned();
    for (nth, name) in choice.hidden().enumerate() {
        let next = format!("{more}{} {name}", if nth == 0 { ":" } else { "," });
        if columns::width(&next) > WIDTH - ", …".len() {
            more.push_str(", …");
            break;
        }
        more = next;
    }
    lines.push(paint.faint(more));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Paint = Paint(false);

    fn numbered(name: &str, n: usize) -> Vec<String> {
        (0..n).map(|nth| format!("  {name} {nth}")).collect()
    }

    fn report() -> Vec<Section> {
        let mut rows = Section::new("Requests").headed("Requests".to_owned()).with_rows("request");
        for row in numbered("request", 30) {
            rows.add_row(Rank::Figure, row);
        }
        let mut first = Section::of("Outcome", Rank::Always, numbered("outcome", 3)).apart();
        first.add_whole(Rank::Cause, &numbered("advice", 2));
        let tags = Section::of("Tags", Rank::Minor, numbered("tag", 4)).headed("Tags".to_owned());
        vec![first, rows, tags]
    }

    #[test]
    fn what_fits_is_shown_whole() {
        let sections =
            [Section::of("a", Rank::Always, numbered("a", 10)), Section::of("b", Rank::Note, numbered("b", 12))];
        let lines = fitted(&sections, PLAIN);
        assert_eq!((lines.len(), &lines[10]), (SCREEN, &String::new()));
        assert_eq!(lines, whole(&sections, PLAIN));
    }

    #[test]
    fn rows_are_cut_and_counted() {
        let text = fitted(&report(), PLAIN).join("\n");
        assert_eq!(text.lines().count(), SCREEN, "{text}");
        assert!(text.contains("  advice 1\n\nRequests\n  request 0\n"), "{text}");
        assert!(text.ends_with("  request 13\n  … and 16 more requests (-v)\nMore with -v: Tags"), "{text}");
        let whole = whole(&report(), PLAIN).join("\n");
        assert!(whole.contains("  request 29\n\nTags\n  tag 0\n") && !whole.contains("-v"), "{whole}");
    }

    #[test]
    fn what_is_always_shown_may_be_longer() {
        let mut sections = report();
        sections.push(Section::of("Findings", Rank::Always, numbered("finding", 40)));
        let text = fitted(&sections, PLAIN).join("\n");
        assert!(
            text.contains("finding 39\nMore with -v: Outcome, Requests, Tags") && !text.contains("advice"),
            "{text}"
        );
    }

    #[test]
    fn rows_in_files_are_counted_with_the_others() {
        let mut sections = report();
        sections[1].and_in_files(7);
        assert!(fitted(&sections, PLAIN).join("\n").contains("  … and 23 more requests (-v, -o FILE.json)\n"));
        assert!(whole(&sections, PLAIN).join("\n").contains("  … and 7 more, in -o FILE.json and -o FILE.csv\n"));
    }
}
