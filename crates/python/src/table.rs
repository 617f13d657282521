//! Tables, by the Arrow PyCapsule interface
//! (<https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>).

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator};
use arrow_schema::SchemaRef;
use arrow_schema::ffi::FFI_ArrowSchema;
use narrows_lab::tables;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error::Failure;
use crate::wait::at_once;

/// A table that pandas, Polars, DuckDB and PyArrow take, its numbers, and the names in a series, without copying them.
///
/// Anything that reads the Arrow PyCapsule interface takes it: ``polars.DataFrame(table)``,
/// ``pandas.DataFrame.from_arrow(table)`` (pandas 3) or ``pyarrow.table(table)``. The names of columns carry the
/// units.
#[pyclass(frozen, module = "narrows")]
pub struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    /// Of one piece.
    pub fn new(batch: RecordBatch) -> Table {
        Table { schema: batch.schema(), batches: vec![batch] }
    }

    /// Of several pieces with the same columns; of none of them if there are none.
    pub fn of(batches: Vec<RecordBatch>) -> Table {
        let schema = batches
            .first()
            .map_or_else(|| Arc::new(arrow_schema::Schema::empty()), RecordBatch::schema);
        Table { schema, batches }
    }

    fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}

#[pymethods]
impl Table {
    /// The columns' names, in order.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.rows()
    }

    /// The unit of each column that has one and is a metric, by name.
    #[getter]
    fn units(&self) -> BTreeMap<String, String> {
        let unit = |field: &arrow_schema::FieldRef| {
            Some((field.name().clone(), field.metadata().get("unit")?.clone()))
        };
        self.schema.fields().iter().filter_map(unit).collect()
    }

    fn __len__(&self) -> usize {
        self.rows()
    }

    fn __repr__(&self) -> String {
        const SHOWN: usize = 9;
        let names = self.column_names();
        let more = names.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let names = names[..names.len().min(SHOWN)].join(", ");
        format!("<narrows.Table: {} rows of {names}{more}>", self.rows())
    }

    /// The rows as dicts, for small tables where no library of data frames is at hand.
    ///
    /// Returns
    /// -------
    /// list of dict
    ///     A dict for each row, by the names of the columns, which carry the units.
    fn to_pylist(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let json = at_once(py, || {
            let mut rows = Vec::new();
            for batch in &self.batches {
                let some: Vec<serde_json::Value> = serde_arrow::from_record_batch(batch)
                    .map_err(|error| Failure::of("Arrow", error))?;
                rows.extend(some);
            }
            serde_json::to_string(&rows).map_err(|error| Failure::of("Arrow", error))
        })?;
        loads(py, &json)
    }

    /// The columns, by the Arrow PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = at_once(py, || {
            FFI_ArrowSchema::try_from(self.schema.as_ref())
                .map_err(|error| Failure::of("Arrow", error))
        })?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The rows, by the Arrow PyCapsule interface; the table stays as it is.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // What is asked for is a wish; the reader casts.
        drop(requested_schema);
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, Arc::clone(&self.schema));
        PyCapsule::new_with_value(
            py,
            FFI_ArrowArrayStream::new(Box::new(reader)),
            c"arrow_array_stream",
        )
    }
}

/// Text of JSON as Python's values.
pub fn loads(py: Python<'_>, json: &str) -> PyResult<Py<PyAny>> {
    Ok(py.import("json")?.getattr("loads")?.call1((json,))?.unbind())
}

/// What there is of laws, detectors, metrics and the like, as a table of text.
#[pyfunction]
pub fn listed(py: Python<'_>, what: &str) -> PyResult<Table> {
    use narrows_cli::What;
    at_once(py, || {
        let all = [
            ("laws", What::Laws),
            ("detectors", What::Detectors),
            ("starts", What::Starts),
            ("params", What::Params),
            ("controls", What::Controls),
            ("scenarios", What::Scenarios),
            ("metrics", What::Metrics),
        ];
        let found = all.iter().find(|(name, _)| *name == what);
        let Some((name, of)) = found else {
            return Err(Failure::of(what, "nothing of this name is listed"));
        };
        let (_, listed) = narrows_cli::list::listed(Some(*of))?;
        let rows = listed.get(*name).and_then(|rows| rows.as_array()).cloned().unwrap_or_default();
        let mut names: Vec<String> = Vec::new();
        for key in rows.iter().filter_map(|row| row.as_object()).flat_map(|row| row.keys()) {
            if !names.contains(key) {
                names.push(key.clone());
            }
        }
        let cell =
            |row: &serde_json::Value, name: &String| Some(row.get(name)?.as_str()?.to_owned());
        let cells: Vec<Vec<Option<String>>> =
            rows.iter().map(|row| names.iter().map(|name| cell(row, name)).collect()).collect();
        Ok(Table::new(tables::texts(&names, &cells)?))
    })
}
