//! Results as Arrow tables. The names of columns carry the units, as in CSV; columns of metrics have their
//! unit and what they are in the field's metadata besides.

use std::collections::HashMap;
#[cfg(feature = "parquet")]
use std::io::Write;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, FieldRef, Schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_arrow::schema::{SchemaLike, TracingOptions};

use crate::Error;
use crate::compare::{Row, Spreads};
use crate::describe::describe_event;
use crate::detection::Judged;
use crate::measured::seconds;
use crate::metrics::{ConnectionSummary, LinkSummary, Metric, PATH, TEST};
use crate::plan::Point;
use crate::scenario::Scenario;
use crate::series::Sample;
use crate::summary::Summary;

/// A column for each field of `T`: structs and lists as such, words as text.
///
/// # Errors
/// `T` has a field that no column can hold.
pub fn of<T: Serialize + DeserializeOwned>(rows: &[T]) -> Result<RecordBatch, Error> {
    to_table(rows, &[])
}

/// The samples of a run, a row per path every 100 ms. Names are dictionaries: a few stand in millions of rows.
///
/// # Errors
/// None in practice.
pub fn series(samples: &[Sample]) -> Result<RecordBatch, Error> {
    to_table(samples, &["connection", "path"])
}

/// Where few values stand in many rows a column of text is a dictionary, and so it is in all that is joined with it.
fn to_table<T>(rows: &[T], few: &[&str]) -> Result<RecordBatch, Error>
where
    T: Serialize + DeserializeOwned,
{
    let options = TracingOptions::default()
        .strings_as_large_utf8(false)
        .sequence_as_large_list(false)
        .enums_without_data_as_strings(true);
    let wrong = |error| Error::input("Arrow", error);
    let mut fields = Vec::<FieldRef>::from_type::<T>(options).map_err(wrong)?;
    fields.iter_mut().for_each(|field| *field = with_dictionaries(field, few));
    serde_arrow::to_record_batch(&fields, &rows).map_err(wrong)
}

/// The type of text of which few values stand in many rows.
fn dictionary() -> DataType {
    DataType::Dictionary(DataType::Int32.into(), DataType::Utf8.into())
}

/// The field whose columns of these names, also in lists of structs, are dictionaries.
fn with_dictionaries(field: &FieldRef, few: &[&str]) -> FieldRef {
    let kind = match field.data_type() {
        DataType::Utf8 if few.contains(&field.name().as_str()) => dictionary(),
        // Words of an enum, whose unsigned indices pandas 2 does not take.
        DataType::Dictionary(..) => dictionary(),
        DataType::List(items) => DataType::List(with_dictionaries(items, few)),
        DataType::Struct(fields) => {
            DataType::Struct(fields.iter().map(|field| with_dictionaries(field, few)).collect())
        }
        _ => return Arc::clone(field),
    };
    Arc::new(field.as_ref().clone().with_data_type(kind))
}

/// The connections and flows of a run, with their paths. Names are those of [`series`], to be joined with it.
///
/// # Errors
/// None in practice.
pub fn connections(connections: &[ConnectionSummary]) -> Result<RecordBatch, Error> {
    to_table(connections, &["name"])
}

/// The links of a run.
///
/// # Errors
/// None in practice.
pub fn links(links: &[LinkSummary]) -> Result<RecordBatch, Error> {
    of(links)
}

/// The decisions of the detector, as `decisions.csv` has them.
///
/// # Errors
/// None in practice.
pub fn decisions(decisions: &[Judged]) -> Result<RecordBatch, Error> {
    #[derive(Serialize, Deserialize)]
    struct Decision {
        time_s: f64,
        groups: String,
        uncongested: String,
        undecided: String,
        correct: Option<bool>,
        observations: usize,
        correct_observations: usize,
    }
    let row = |of: &Judged| Decision {
        time_s: of.time_s,
        groups: of.groups.clone(),
        uncongested: of.uncongested.clone(),
        undecided: of.undecided.clone(),
        correct: of.correct,
        observations: of.observations,
        correct_observations: of.correct_observations,
    };
    of(&decisions.iter().map(row).collect::<Vec<_>>())
}

/// What changes in the network during a run.
///
/// # Errors
/// None in practice.
pub fn events(scenario: &Scenario) -> Result<RecordBatch, Error> {
    #[derive(Serialize, Deserialize)]
    struct Event {
        time_s: f64,
        event: String,
    }
    let row =
        |of: &crate::Event| Event { time_s: seconds(of.at), event: describe_event(scenario, of) };
    of(&scenario.events.iter().map(row).collect::<Vec<_>>())
}

/// A run of a comparison, or one alone.
#[derive(Clone, Copy)]
pub struct RunOf<'a> {
    /// The point of the sweep.
    pub set: &'a [Point],
    /// The signal of the detector, where the comparison names signals.
    pub signal: Option<&'a str>,
    /// The results.
    pub summary: &'a Summary,
}

/// Runs, a row each: what was run, and the metrics of the connection under test.
///
/// # Errors
/// None in practice.
pub fn runs(runs: &[RunOf]) -> Result<RecordBatch, Error> {
    let mut columns = Columns::default();
    columns.text("scenario", runs.iter().map(|run| Some(run.summary.scenario.as_str())));
    columns.points(&runs.iter().map(|run| run.set).collect::<Vec<_>>());
    columns.text("cc", runs.iter().map(|run| run.summary.cc.as_deref()));
    columns.text("signal", runs.iter().map(|run| run.signal));
    columns.text("host", runs.iter().map(|run| Some(run.summary.host.as_str())));
    columns.counts("seed", runs.iter().map(|run| run.summary.seed));
    for metric in TEST {
        let value = |run: &RunOf| run.summary.test.as_ref().and_then(metric.get);
        columns.number(about(metric, metric.name.into()), runs.iter().map(value));
    }
    columns.table()
}

/// The rows of a comparison, as `rows.csv` has them; the paths are in [`paths`].
///
/// # Errors
/// None in practice.
pub fn rows(rows: &[Row]) -> Result<RecordBatch, Error> {
    let mut columns = Columns::default();
    let all: Vec<&Row> = rows.iter().collect();
    columns.rows(&all);
    columns.spreads(TEST, &rows.iter().map(|row| &row.metrics).collect::<Vec<_>>());
    columns.table()
}

/// The paths of the rows of a comparison, a row each.
///
/// # Errors
/// None in practice.
pub fn paths(rows: &[Row]) -> Result<RecordBatch, Error> {
    let each: Vec<_> =
        rows.iter().flat_map(|row| row.paths.iter().map(move |path| (row, path))).collect();
    let mut columns = Columns::default();
    columns.rows(&each.iter().map(|(row, _)| *row).collect::<Vec<_>>());
    columns.names("path", each.iter().map(|(_, path)| path.name.as_str()));
    columns.spreads(PATH, &each.iter().map(|(_, path)| &path.metrics).collect::<Vec<_>>());
    columns.table()
}

/// Rows of text by name.
///
/// # Errors
/// Rows of several lengths.
pub fn texts(names: &[String], rows: &[Vec<Option<String>>]) -> Result<RecordBatch, Error> {
    let mut columns = Columns::default();
    for (at, name) in names.iter().enumerate() {
        columns.text(name, rows.iter().map(|row| row.get(at)?.as_deref()));
    }
    columns.table()
}

/// The table with another column of text.
///
/// # Errors
/// It has not as many values as the table has rows.
pub fn with_text(table: &RecordBatch, name: &str, values: &[String]) -> Result<RecordBatch, Error> {
    let mut columns =
        Columns { fields: table.schema().fields().to_vec(), arrays: table.columns().to_vec() };
    columns.text(name, values.iter().map(|value| Some(value.as_str())));
    columns.table()
}

/// Writes a table as Parquet. The same table gives the same bytes.
///
/// # Errors
/// It cannot be written.
#[cfg(feature = "parquet")]
pub fn write_parquet(table: &RecordBatch, to: impl Write + Send) -> std::io::Result<()> {
    use parquet::arrow::ArrowWriter;
    use parquet::basic::Compression;
    use parquet::file::properties::WriterProperties;

    // The default names the version of the library, which is not ours to put in a result.
    let properties = WriterProperties::builder()
        .set_created_by("narrows".into())
        .set_compression(Compression::SNAPPY)
        .build();
    let mut writer = ArrowWriter::try_new(to, table.schema(), Some(properties))?;
    writer.write(table)?;
    writer.close()?;
    Ok(())
}

/// A column of text of a file of Parquet; none where the file is not whole, or has no such column.
#[cfg(feature = "parquet")]
pub fn read_text(file: &std::path::Path, column: &str) -> Option<Vec<String>> {
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    let file = std::fs::File::open(file).ok()?;
    let batches = ParquetRecordBatchReaderBuilder::try_new(file).ok()?.build().ok()?;
    let mut all = Vec::new();
    for batch in batches {
        let batch = batch.ok()?;
        let texts = batch.column_by_name(column)?.as_any().downcast_ref::<StringArray>()?;
        all.extend(texts.iter().map(|text| text.unwrap_or_default().to_owned()));
    }
    Some(all)
}

/// The field of a metric.
fn about<T>(metric: &Metric<T>, name: String) -> Field {
    let about = [("unit", metric.unit), ("about", metric.about)];
    let about = about.map(|(key, value)| (key.to_owned(), value.to_owned()));
    Field::new(name, DataType::Float64, true).with_metadata(HashMap::from(about))
}

/// A table being put together.
#[derive(Default)]
struct Columns {
    fields: Vec<FieldRef>,
    arrays: Vec<ArrayRef>,
}

impl Columns {
    fn add(&mut self, field: Field, array: ArrayRef) {
        self.fields.push(Arc::new(field));
        self.arrays.push(array);
    }

    fn text<'a>(&mut self, name: &str, values: impl Iterator<Item = Option<&'a str>>) {
        let values = Arc::new(values.collect::<StringArray>());
        self.add(Field::new(name, DataType::Utf8, true), values);
    }

    fn names<'a>(&mut self, name: &str, values: impl Iterator<Item = &'a str>) {
        let values = Arc::new(values.collect::<DictionaryArray<Int32Type>>());
        self.add(Field::new(name, dictionary(), true), values);
    }

    fn counts(&mut self, name: &str, values: impl Iterator<Item = u64>) {
        let values = Arc::new(UInt64Array::from_iter_values(values));
        self.add(Field::new(name, DataType::UInt64, false), values);
    }

    fn number(&mut self, field: Field, values: impl Iterator<Item = Option<f64>>) {
        self.add(field, Arc::new(values.collect::<Float64Array>()));
    }

    /// The points of a sweep: of each axis the field, its value, the value as a number and its unit.
    fn points(&mut self, sets: &[&[Point]]) {
        let axes = sets.iter().map(|set| set.len()).max().unwrap_or(0);
        for axis in 0..axes {
            let name = if axis == 0 { "set".into() } else { format!("set{}", axis + 1) };
            let of = |set: &&'_ [Point]| set.get(axis).cloned();
            let points: Vec<Option<Point>> = sets.iter().map(of).collect();
            let text =
                |part: fn(&Point) -> &str| points.iter().map(move |point| point.as_ref().map(part));
            self.text(&format!("{name}_field"), text(|point| &point.field));
            self.text(&format!("{name}_value"), text(|point| &point.value));
            let number = Field::new(format!("{name}_number"), DataType::Float64, true);
            self.number(number, points.iter().map(|point| point.as_ref()?.number));
            let unit = points.iter().map(|point| point.as_ref()?.unit.as_deref());
            self.text(&format!("{name}_unit"), unit);
        }
    }

    /// What was compared.
    fn rows(&mut self, rows: &[&Row]) {
        self.text("scenario", rows.iter().map(|row| Some(row.scenario.as_str())));
        self.points(&rows.iter().map(|row| &row.set[..]).collect::<Vec<_>>());
        self.text("cc", rows.iter().map(|row| Some(row.cc.as_str())));
        self.text("signal", rows.iter().map(|row| row.signal));
        self.text("host", rows.iter().map(|row| Some(row.host.as_str())));
        self.counts("seeds", rows.iter().map(|row| row.seeds as u64));
        self.counts("unfit", rows.iter().map(|row| row.unfit as u64));
    }

    /// Each metric with its mean, half its 95 % interval, median and quartiles.
    fn spreads<T>(&mut self, table: &[Metric<T>], all: &[&Spreads]) {
        type Part = fn(&narrows_stats::Spread) -> Option<f64>;
        let parts: [(&str, Part); 5] = [
            ("mean", |of| Some(of.mean)),
            ("ci95", |of| of.ci95),
            ("median", |of| Some(of.median)),
            ("q1", |of| Some(of.q1)),
            ("q3", |of| Some(of.q3)),
        ];
        for metric in table {
            for (name, part) in parts {
                let value = |of: &&Spreads| of.get(metric.name)?.as_ref().and_then(part);
                let field = about(metric, format!("{}_{name}", metric.name));
                self.number(field, all.iter().map(value));
            }
        }
    }

    fn table(self) -> Result<RecordBatch, Error> {
        let schema = Arc::new(Schema::new(self.fields));
        RecordBatch::try_new(schema, self.arrays).map_err(|error| Error::input("Arrow", error))
    }
}
