"""Stores that tests of several rooms share."""

import atexit
import functools
import gc
import logging
import os
import shutil
import sys
import uuid
from collections import Counter

import fsspec
import hypothesis
import nbval.kernel
import pytest
from fsspec.registry import _registry

from snapshot_explorer.formats import missing_versions
from snapshot_explorer.storage import retries
from tests.support import filesystems, spark_clusters, tiers
from tests.support.kernels import SocketKernelManager
from tests.support.refusals import RefusalRecorder

# The processes that tests start import the package hundreds of times: it is compiled once.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
os.environ.update(spark_clusters.SHORT_LIVED | os.environ)

# A loaded machine is slow now and then: how long an example takes is no property of the code.
hypothesis.settings.register_profile("unhurried", deadline=None)
# .ci/run asks for the same examples each time: it judges a change, and what was wrong before is not the change's fault.
# Every other run draws new ones, and so looks for what is wrong.
hypothesis.settings.register_profile("same examples", deadline=None, derandomize=True)
hypothesis.settings.load_profile("same examples" if os.environ.get(tiers.SAME_EXAMPLES) else "unhurried")


SCOPES = {
    "oracle-delta": ("tests/oracles/test_delta.py", "tests/oracles/test_retention.py"),
    "oracle-hudi": ("tests/oracles/test_hudi.py",),
    "oracle-ducklake": ("tests/oracles/test_ducklake.py",),
    "browser": (
        "tests/jupyter/explorer/test_first_paint.py",
        "tests/jupyter/explorer/test_in_a_browser.py",
        "tests/jupyter/explorer/test_timeline_in_a_browser.py",
        "tests/jupyter/explorer/test_grid_in_a_browser.py",
        "tests/jupyter/explorer/test_page_in_a_browser.py",
        "tests/view/test_figures_in_a_browser.py",
        "tests/view/test_html_in_a_browser.py",
    ),
    "spark-modes": ("tests/spark/test_modes.py",),
    "oracle-iceberg": (
        "tests/oracles/test_iceberg.py",
        "tests/oracles/test_orphans.py",
        "tests/oracles/test_rest_catalogs.py",
    ),
    "oracle-paimon": ("tests/oracles/test_paimon.py",),
    "oracle-pairs": ("tests/oracles/test_erasure.py", "tests/oracles/test_pairs.py", "tests/oracles/test_repairs.py"),
    "spark-processes": ("tests/spark/test_processes.py",),
    "spark-failures": ("tests/spark/test_failures.py",),
    "oracle-live": ("tests/oracles/test_live_hudi.py", "tests/oracles/test_lake.py"),
    "spark": ("tests/spark/",),
    "faults": ("tests/robustness/test_faults.py",),
    "package": ("tests/package/test_binder.py", "tests/package/test_wheel.py"),
    "mutations": ("tests/robustness/test_mutations.py",),
    "notebook-spark": ("notebooks/04_spark.ipynb",),
    "s3-faults": ("tests/storage/test_s3_faults.py",),
    "rounds": ("tests/table/test_rounds.py",),
    "histories": ("tests/rows/test_random_histories.py",),
}
"""The files that take longest, by how their names begin: the longest first, but a browser beside the first engines,
which leave it the time that they wait. Files of a scope run in one worker: they share a Spark session, a browser or a
server. Every other file is a scope of its own and takes seconds."""
STARTED = {
    "chromium": "browser",
    "connector_wrote": "oracle",
    "environment": "oracle",
    "families": "oracle",
    "lab": "browser",
    "new_environment": "slow",
    "s3_endpoint": "stores",
    "spark_mode": "spark",
}
"""Fixtures that start Java, a browser, a server or an installation, and the marker of the tests that request them."""
PLACES = {
    # Notebooks 01 and 02 are quick.
    "notebooks/03": "slow",
    "notebooks/04": "spark",
    "notebooks/05": "slow",
    "notebooks/06": "slow",
    "notebooks/07": "slow",
    "notebooks/08": "stores",
    "notebooks/09": "slow",
    "notebooks/1": "slow",
    # Java and servers.
    "tests/spark/": "spark",
    "tests/formats/ducklake/test_mutations.py": "slow",
    "tests/formats/ducklake/test_postgres.py": "stores",
    "tests/storage/test_object_stores.py": "stores",
    "tests/storage/test_object_stores.py::test_a_table_opens_logs_loads_and_compares_as_on_the_local_disk[web-orders": None,  # noqa: E501
    "tests/storage/test_object_stores.py::test_what_does_not_exist_is_missing[web]": None,
    # The only test that raises a refusal.
    "tests/table/test_changes_as_paimon.py::test_the_rows_are_what_paimon_reads[aggregates_descending-2-4-diff]": None,
    # Packages.
    "tests/agents/test_protocol.py": "extras",
    "tests/engines/test_spark_changes.py": "extras",
    "tests/engines/test_spark_filters.py": "extras",
    "tests/engines/test_spark_source.py": "extras",
    "tests/formats/paimon/test_binary_aggregates.py::test_bytes_that_are_not_a_sketch": "extras",
    "tests/formats/paimon/test_binary_aggregates.py::test_the_union_of_small_theta": "extras",
    "tests/formats/paimon/test_read_tables.py::test_rows_are_what_paimon_reads[aggregates_sketches": "extras",
    "tests/jupyter/explorer/test_saved.py": "extras",
    "tests/jupyter/test_commands.py::test_open_asks_a_catalog": "extras",
    "tests/jupyter/test_pictures.py::test_in_a_notebook": "extras",
    "tests/lake/test_catalogs.py": "extras",
    "tests/package/test_check_here.py": "extras",
    "tests/package/test_docstrings.py::test_a_public_method": "extras",
    "tests/package/test_old_libraries.py::test_a_pyspark": "extras",
    "tests/package/test_old_libraries.py::test_what_pyspark": "extras",
    "tests/package/test_release.py::test_workflows": "extras",
    "tests/storage/test_locations.py::test_a_file_elsewhere_on_the_same_storage_is_followed[s3": "extras",
    "tests/storage/test_locations.py::test_a_file_on_another_storage_is_not_followed[s3": "extras",
    "tests/storage/test_locations.py::test_the_refusal_names_the_location": "extras",
    "tests/storage/test_options.py::test_a_key": "extras",
    "tests/storage/test_options.py::test_a_value_that_cannot_be_right_is_refused_by_the_name_of_its_option[abfs": "extras",  # noqa: E501
    "tests/storage/test_options.py::test_a_value_that_cannot_be_right_is_refused_by_the_name_of_its_option[webhdfs": "extras",  # noqa: E501
    "tests/storage/test_options.py::test_an_unknown_option": "extras",
    "tests/storage/test_options.py::test_names_of_object_store": "extras",
    "tests/storage/test_options.py::test_no_option_of_any_storage_is_shown_whatever_it_contains[abfs": "extras",
    "tests/storage/test_options.py::test_no_option_of_any_storage_is_shown_whatever_it_contains[gs": "extras",
    "tests/storage/test_options.py::test_no_option_of_any_storage_is_shown_whatever_it_contains[https": "extras",
    "tests/storage/test_hostile_stores.py::test_a_length_beyond_the_limit_is_refused_after": "extras",
    "tests/robustness/test_listing_faults.py::test_a_listing_that_fails_gives_the_right_answer_or_our_error_or_marks_what_was_not_read[s3]": "slow",  # noqa: E501
    "tests/rows/test_changes_since.py::test_any_cuts_give_the_same_stream": "slow",
    "tests/storage/test_hostile_stores.py::test_a_listing_that_is_sent_too_slowly": "slow",
    "tests/storage/test_hostile_stores.py::test_headers_that_never_end": "slow",
    "tests/storage/test_hostile_stores.py::test_what_comes_too_slowly": "slow",
    "tests/table/test_secrets_in_logs.py::test_no_output_of_a_table_shows_a_secret_of_its_log[delta]": "slow",
    "tests/storage/test_origins.py::test_a_certificate": "extras",
    "tests/storage/test_origins.py::test_a_proxy_of_another_kind": "extras",
    "tests/storage/test_origins.py::test_an_encrypted": "extras",
    "tests/storage/test_signatures.py": "extras",
    "tests/storage/test_s3_clients.py": "extras",
    "tests/storage/test_same_files.py::test_a_path_that_may_be_another_one_of_a_listed_file_is_undecided[s3": "extras",
    "tests/storage/test_same_files.py::test_another_remote_file_of_the_same_name_is_certainly_another[abfs": "extras",
    "tests/storage/test_same_files.py::test_another_remote_file_of_the_same_name_is_certainly_another[s3": "extras",
    "tests/storage/test_same_files.py::test_paths_of_one_remote_file_have_one_address[a": "extras",
    "tests/storage/test_same_files.py::test_paths_of_one_remote_file_have_one_address[s3": "extras",
    "tests/table/test_catalogs.py": "extras",
    "tests/table/test_external_files.py::test_a_file_below_the_folder_is_inside_however_it_is_spelled[s3": "extras",
    "tests/table/test_hostile_catalogs.py": "extras",
    # Seconds.
    "tests/agents/test_access.py::test_no_secret_is_in_an_answer[trace": "slow",
    "tests/agents/test_access.py::test_nothing_is_written": "slow",
    "tests/agents/test_incidents.py::test_amounts": "slow",
    "tests/agents/test_incidents.py::test_is_the_customer": "slow",
    "tests/agents/test_tools.py::test_what_a_notebook_says": "slow",
    "tests/arrow/test_parquet_batches.py::test_a_dictionary_of_long": "slow",
    "tests/checks/test_action.py::test_inputs_are_not_run": "slow",
    "tests/checks/test_action.py::test_the_result_is_a_comment": "slow",
    "tests/compare/test_comparison.py::test_what_a_deletion_vector": "slow",
    "tests/engines/test_conditions.py::test_a_condition_nested_without_end": "slow",
    "tests/engines/test_duckdb_sessions.py::test_every_connection": "slow",
    "tests/engines/test_local.py::test_a_condition_is_applied_to_many_small_splits_together[1-160": "slow",
    "tests/engines/test_local.py::test_of_local_files": "slow",
    "tests/engines/test_sql.py::test_a_forked_process": "slow",
    "tests/formats/delta/test_actions.py::test_however_many_are_taken": "slow",
    "tests/formats/delta/test_log.py::test_memory": "slow",
    "tests/formats/delta/test_read.py::test_no_changed_byte": "slow",
    "tests/formats/ducklake/test_lakes.py::test_a_comparison_says_no_more_than_files_prove[events": "slow",
    "tests/formats/ducklake/test_lakes.py::test_a_comparison_says_no_more_than_files_prove[orders": "slow",
    "tests/formats/hudi/test_log_files.py::test_damaged_log_files": "slow",
    "tests/formats/hudi/test_log_files.py::test_serialized_keys_that_were": "slow",
    "tests/formats/hudi/test_parsing.py::test_avro_commits": "slow",
    "tests/formats/iceberg/test_opening.py::test_more_refs": "slow",
    "tests/formats/iceberg/test_opening.py::test_requests_do_not_grow": "slow",
    "tests/formats/iceberg/test_streaming.py::test_a_plan_has_the_files_of_the_full_list_that_a_condition_does_not_rule_out[1]": "slow",  # noqa: E501
    "tests/formats/paimon/test_avro.py::test_a_block": "slow",
    "tests/formats/paimon/test_orc_tail.py::test_two_thousand": "slow",
    "tests/formats/paimon/test_pruning.py::test_a_newer_version": "slow",
    "tests/formats/paimon/test_pruning.py::test_keys_are_written": "slow",
    "tests/formats/paimon/test_read_files.py::test_damage_to_the_footer": "slow",
    "tests/formats/paimon/test_streaming.py::test_a_plan_is": "slow",
    "tests/health/test_health.py::test_the_drawing_is_bounded": "slow",
    "tests/health/test_symptoms.py::test_a_finding_opens": "slow",
    "tests/health/test_symptoms.py::test_the_explorer_answers": "slow",
    "tests/health/test_symptoms.py::test_what_is_expected": "slow",
    "tests/jupyter/explorer/test_explorer.py::test_new_commits_are_followed": "slow",
    "tests/jupyter/explorer/test_page.py::test_a_page_has_the_newest": "slow",
    "tests/jupyter/explorer/test_page.py::test_recording_stops": "slow",
    "tests/jupyter/explorer/test_rows.py::test_a_bisection_announces": "slow",
    "tests/jupyter/explorer/test_rows.py::test_a_bisection_that_reads_much": "slow",
    "tests/jupyter/explorer/test_rows.py::test_a_condition_is_bisected": "slow",
    "tests/jupyter/explorer/test_rows.py::test_a_condition_that_holds_nowhere": "slow",
    "tests/jupyter/explorer/test_rows.py::test_a_row_is_blamed": "slow",
    "tests/jupyter/explorer/test_rows.py::test_an_answer_that_assumes": "slow",
    "tests/jupyter/explorer/test_rows.py::test_comparing_rows_is_cancelled": "slow",
    "tests/jupyter/explorer/test_rows.py::test_rows_are_traced": "slow",
    "tests/jupyter/explorer/test_rows.py::test_the_commit_of_b": "slow",
    "tests/jupyter/explorer/test_totals.py::test_totals_that": "slow",
    "tests/jupyter/test_completion.py::test_after_unloading": "slow",
    "tests/jupyter/test_completion.py::test_completion_asks": "slow",
    "tests/jupyter/test_completion.py::test_completion_that_cannot": "slow",
    "tests/jupyter/test_hints.py::test_no_message_spells": "slow",
    "tests/jupyter/test_journeys.py::test_conditions": "slow",
    "tests/jupyter/test_journeys.py::test_the_rows_before": "slow",
    "tests/jupyter/test_lines.py::test_an_explorer_is_written": "slow",
    "tests/jupyter/test_lines.py::test_debug": "slow",
    "tests/jupyter/test_rows.py::test_a_trace_needs": "slow",
    "tests/jupyter/test_suggestions.py::test_conditions_and_values": "slow",
    "tests/jupyter/test_typed.py::test_titles": "slow",
    "tests/lake/test_following.py::test_the_pace": "slow",
    "tests/lake/test_lake_trace.py::test_a_signature": "extras",
    "tests/lake/test_lake_trace.py::test_it_draws": "slow",
    "tests/lake/test_lake_trace.py::test_no_damage": "slow",
    "tests/lake/test_lake_trace.py::test_the_statements_of_each_format": "slow",
    "tests/lake/test_overview.py::test_many_tables_are_read_by_other": "slow",
    "tests/lake/test_overview.py::test_of_very_many": "slow",
    "tests/lake/test_overview.py::test_tables_are_shown": "slow",
    "tests/lake/test_overview.py::test_tables_that_no_other_process": "slow",
    "tests/lifetimes/test_reading.py::test_an_open_delta_table": "slow",
    "tests/lifetimes/test_reading.py::test_however_many": "slow",
    "tests/package/test_guide.py::test_a_page_of_a_question": "slow",
    "tests/package/test_guide.py::test_the_page_of_commands": "slow",
    "tests/package/test_guide.py::test_the_python_of_a_page_runs[checks": "slow",
    "tests/package/test_import.py::test_importing_what": "slow",
    "tests/package/test_import.py::test_opening_a_table_does_not_load_pandas": "slow",
    "tests/package/test_main.py::test_a_command_of_the_magic": "slow",
    "tests/package/test_main.py::test_a_reader_that_stops": "slow",
    "tests/package/test_main.py::test_a_table_that_cannot_be_read": "slow",
    "tests/package/test_main.py::test_an_answer_is_printed": "slow",
    "tests/package/test_main.py::test_an_interrupt_ends": "slow",
    "tests/package/test_main.py::test_commands_in_a_terminal": "slow",
    "tests/package/test_main.py::test_text_is_as_wide": "slow",
    "tests/package/test_main.py::test_the_tables_below": "slow",
    "tests/package/test_tiers.py::test_with_workers": "slow",
    "tests/package/test_wheel.py": "slow",
    "tests/package/test_writers.py::test_what_writes": "slow",
    "tests/queries/test_random_queries.py": "slow",
    "tests/repairs/test_undo.py::test_char_columns": "slow",
    "tests/reports/test_reports.py::test_hostile_text": "slow",
    "tests/reports/test_reports.py::test_the_heading": "slow",
    "tests/robustness/test_bombs.py::test_a_checkpoint": "slow",
    "tests/robustness/test_bombs.py::test_a_dictionary": "slow",
    "tests/robustness/test_faults.py": "slow",
    "tests/robustness/test_mutations.py": "slow",
    "tests/robustness/test_old_metadata.py::test_one_damaged_file": "slow",
    "tests/robustness/test_replaced_files.py": "slow",
    "tests/robustness/test_replaced_files.py::test_a_file_of_another_size": None,
    "tests/robustness/test_store_faults.py": "slow",
    "tests/rows/test_bisect.py::test_every_version_where": "slow",
    "tests/rows/test_blame.py::test_a_blame_without_lines": "slow",
    "tests/rows/test_pair_diff.py::test_rows_beyond": "slow",
    "tests/rows/test_random_histories.py": "slow",
    "tests/rows/test_random_pairs.py": "slow",
    "tests/rows/test_row_diff.py::test_rows_beyond": "slow",
    "tests/rows/test_row_diff.py::test_temporary_files": "slow",
    "tests/rows/test_row_history.py::test_more_rows_than_fit": "slow",
    "tests/rows/test_row_history.py::test_rows_of_large": "slow",
    "tests/rows/test_row_history.py::test_rows_of_large_files_have_the_same_states_as_those_of_small_ones[4]": None,
    "tests/rows/test_row_history.py::test_the_history_has_the_rows_of_a_model[paimon": "slow",
    "tests/storage/test_requests.py::test_many_files_are_read": "slow",
    "tests/storage/test_requests.py::test_row_groups": "slow",
    "tests/storage/test_requests.py::test_stripes": "slow",
    "tests/storage/test_storage.py::test_a_storage_works": "slow",
    "tests/storage/test_storage.py::test_of_many_local": "slow",
    "tests/table/test_comparing.py::test_lifetimes": "slow",
    "tests/table/test_hostile_text.py::test_damage": "slow",
    "tests/table/test_interrupts.py::test_a_statement": "slow",
    "tests/table/test_live.py": "slow",
    "tests/table/test_not_checked.py::test_no_result_calls": "slow",
    "tests/table/test_not_checked.py::test_numbers_of_files": "slow",
    "tests/table/test_orphans.py::test_tables_of_the_real_engines": "slow",
    "tests/table/test_read_only.py::test_a_delta_table": "slow",
    "tests/table/test_read_only.py::test_the_whole_public": "slow",
    "tests/table/test_requests.py": "slow",
    "tests/table/test_rounds.py::test_a_hudi_table_with": "slow",
    "tests/table/test_scale.py::test_the_benchmark": "slow",
    "tests/table/test_secrets.py::test_a_saved_notebook": "slow",
    "tests/table/test_secrets.py::test_no_failure": "slow",
    "tests/table/test_secrets.py::test_reports_and_checks": "slow",
    "tests/table/test_secrets_in_logs.py::test_no_page_report": "slow",
    "tests/table/test_unread_versions.py::test_a_bisection": "slow",
    "tests/table/test_unread_versions.py::test_a_blame": "slow",
    "tests/table/test_unread_versions.py::test_a_trace_proves": "slow",
    "tests/table/test_unread_versions.py::test_health_and": "slow",
    "tests/table/test_wide.py::test_the_numbers": "slow",
    "tests/terminal/test_terminal.py::test_a_reader_that_stops": "slow",
    "tests/terminal/test_terminal.py::test_less_shows": "slow",
    "tests/terminal/test_terminal.py::test_the_demo_shows": "slow",
    "tests/usage/test_usage.py::test_the_mildest_expiry_that_frees_enough_is_found[iceberg": "slow",
    "tests/usage/test_usage.py::test_the_mildest_expiry_that_frees_enough_is_found[paimon": "slow",
    "tests/usage/test_usage.py::test_usage_of_random_histories_is_what_the_sets_of_files_say[paimon": "slow",
    "tests/usage/test_usage_by_column.py::test_streams_of_an_orc": "slow",
    "tests/view/test_figures.py::test_ten_thousand": "slow",
    "tests/view/test_tracks.py::test_a_bisection_and_a_blame": "slow",
    "tests/view/test_tracks.py::test_the_life": "slow",
    "tests/view/test_tracks.py::test_versions_that_were_not_evaluated": "slow",
}
"""The markers of other tests, by how their ids begin: the longest beginning counts. None: the quick tier after all,
also of a test that `SAMPLED` would leave out."""
SAMPLED = {
    "tests/agents/test_access.py": 6,
    "tests/agents/test_access.py::test_no_path_leads_out": 24,
    "tests/agents/test_tools.py": 4,
    "tests/agents/test_tools.py::test_every_answer": 4,
    "tests/agents/test_tools.py::test_every_call": 6,
    "tests/agents/test_tools.py::test_the_python": 6,
    "tests/checks/test_action.py": 3,
    "tests/compare/test_comparison.py": 2,
    "tests/compare/test_comparison.py::test_the_figure_turned": 2,
    "tests/compare/test_comparison.py::test_versions_of_tables_that_delta_wrote": 16,
    "tests/compare/test_comparison.py::test_versions_of_tables_that_paimon_wrote": 24,
    "tests/compare/test_proof.py::test_no_more_rows": 6,
    "tests/engines/test_duckdb_files.py": 2,
    "tests/engines/test_pruning.py::test_a_file_is_ruled_out": 2,
    "tests/formats/delta/test_entries.py": 4,
    "tests/formats/delta/test_entries.py::test_entries_of_every_file": 10,
    "tests/formats/delta/test_entries.py::test_manifests_count": 10,
    "tests/formats/delta/test_history.py": 3,
    "tests/formats/delta/test_replaced_files.py::test_a_checkpoint": 6,
    "tests/formats/delta/test_replaced_files.py::test_a_commit": 6,
    "tests/formats/delta/test_replaced_files.py::test_a_commit_that": 12,
    "tests/formats/delta/test_types_of_values.py::test_a_value": 6,
    "tests/formats/hudi/test_change_data.py::test_the_changes_of_each": 3,
    "tests/formats/hudi/test_empty_files.py": 6,
    "tests/formats/hudi/test_tables.py": 2,
    "tests/formats/hudi/test_tables.py::test_a_version_has": 6,
    "tests/formats/hudi/test_tables.py::test_the_rows_that_changed": 6,
    "tests/formats/iceberg/test_history.py": 4,
    "tests/formats/iceberg/test_opening.py": 4,
    "tests/formats/iceberg/test_opening.py::test_metadata_of_another_shape": 8,
    "tests/formats/iceberg/test_other_writers.py::test_manifests_and_lists": 24,
    "tests/formats/iceberg/test_other_writers.py::test_numbers_of_rows": 12,
    "tests/formats/iceberg/test_row_changes.py::test_the_rows_of_a_version": 16,
    "tests/formats/iceberg/test_tables.py": 2,
    "tests/formats/iceberg/test_tables.py::test_every_metadata": 8,
    "tests/formats/iceberg/test_tables.py::test_lifetimes": 8,
    "tests/formats/iceberg/test_tables.py::test_metadata_tables": 8,
    "tests/formats/iceberg/test_tables.py::test_rows_are": 10,
    "tests/formats/paimon/test_absent_columns.py::test_each_column": 3,
    "tests/formats/paimon/test_evolution_casts.py::test_a_value": 6,
    "tests/formats/paimon/test_paimon.py": 12,
    "tests/formats/paimon/test_pruning.py::test_a_condition_gives": 40,
    "tests/formats/paimon/test_read_files.py::test_a_damaged_file": 3,
    "tests/formats/paimon/test_read_tables.py::test_rows_are": 5,
    "tests/formats/paimon/test_record_counts.py": 6,
    "tests/formats/paimon/test_vectors.py::test_conditions": 8,
    "tests/formats/test_features.py::test_a_feature_that_is_read": 6,
    "tests/formats/test_features.py::test_a_refusal": 6,
    "tests/formats/test_features.py::test_a_refused_feature": 8,
    "tests/formats/test_row_groups.py::test_a_condition_leaves": 3,
    "tests/health/test_health.py": 2,
    "tests/health/test_health.py::test_every_version": 3,
    "tests/health/test_health.py::test_numbers_agree": 4,
    "tests/health/test_health.py::test_numbers_are": 4,
    "tests/jupyter/explorer/test_explorer.py": 4,
    "tests/jupyter/explorer/test_rows.py": 4,
    "tests/jupyter/explorer/test_views.py": 4,
    "tests/jupyter/explorer/test_views.py::test_the_line_of_code": 5,
    "tests/jupyter/test_commands.py": 6,
    "tests/jupyter/test_commands.py::test_every_command_has_help": 10,
    "tests/jupyter/test_diff.py": 4,
    "tests/jupyter/test_journeys.py": 2,
    "tests/jupyter/test_journeys.py::test_conditions": 4,
    "tests/jupyter/test_lines.py": 6,
    "tests/jupyter/test_lines.py::test_a_range_of_commits": 6,
    "tests/jupyter/test_lines.py::test_a_version_is_accepted": 6,
    "tests/jupyter/test_lines.py::test_an_error_is_one_line": 6,
    "tests/jupyter/test_rows.py": 2,
    "tests/jupyter/test_sql_magic.py": 4,
    "tests/jupyter/test_sql_magic.py::test_a_query_needs": 6,
    "tests/jupyter/test_suggestions.py::test_a_line_suggests": 8,
    "tests/jupyter/test_typed.py": 4,
    "tests/lake/test_following.py": 2,
    "tests/lake/test_overview.py": 2,
    "tests/lake/test_overview_with_holes.py": 6,
    "tests/lake/test_traced_bytes.py": 16,
    "tests/lifetimes/test_delta.py::test_around_commits": 3,
    "tests/lifetimes/test_delta.py::test_lifetimes_agree": 5,
    "tests/lifetimes/test_reading.py": 6,
    "tests/lifetimes/test_reading.py::test_lifetimes_agree": 10,
    "tests/lifetimes/test_statistics.py::test_statistics_of": 32,
    "tests/oracles/test_delta_kept.py::test_a_version_has": 32,
    "tests/oracles/test_delta_kept.py::test_every_kept": 6,
    "tests/oracles/test_delta_kept.py::test_every_version_changed": 10,
    "tests/oracles/test_delta_kept.py::test_every_version_is_found": 10,
    "tests/oracles/test_delta_kept.py::test_history_and_detail": 10,
    "tests/package/test_architecture.py::test_every_file": 10,
    "tests/package/test_guide.py::test_the_python": 9,
    "tests/package/test_main.py": 4,
    "tests/package/test_old_libraries.py::test_a_case": 28,
    "tests/queries/test_sql.py": 2,
    "tests/queries/test_sql.py::test_a_correlated": 2,
    "tests/queries/test_sql.py::test_results_are": 10,
    "tests/refs/test_grammar.py::test_a_text": 4,
    "tests/repairs/test_repair.py": 2,
    "tests/repairs/test_undo.py": 3,
    "tests/repairs/test_undo.py::test_every_commit": 3,
    "tests/retention/test_metadata_files.py::test_the_files_of_a_log": 9,
    "tests/retention/test_paimon.py": 6,
    "tests/retention/test_readability.py": 2,
    "tests/retention/test_readability.py::test_all_manifests": 8,
    "tests/robustness/test_after_faults.py": 6,
    "tests/robustness/test_after_faults.py::test_a_listing_that_lacks": 6,
    "tests/robustness/test_after_faults.py::test_retention_lacks": 3,
    "tests/robustness/test_bombs.py": 4,
    "tests/robustness/test_bombs.py::test_a_file_in_an_archive": 3,
    "tests/robustness/test_bombs.py::test_a_file_of_holes": 8,
    "tests/robustness/test_lacking_resources.py": 4,
    "tests/robustness/test_lacking_resources.py::test_a_call_without": 8,
    "tests/robustness/test_listing_faults.py::test_a_listing_that_fails": 4,
    "tests/robustness/test_listing_faults.py::test_no_call": 7,
    "tests/robustness/test_nesting.py": 4,
    "tests/robustness/test_nesting.py::test_types_of_60": 6,
    "tests/robustness/test_nesting.py::test_types_of_more": 8,
    "tests/robustness/test_old_metadata.py": 4,
    "tests/robustness/test_path_forms.py": 4,
    "tests/robustness/test_replaced_files.py::test_a_file_of_another_size": 6,
    "tests/rows/test_anomalies.py": 2,
    "tests/rows/test_bisect.py": 5,
    "tests/rows/test_bisect.py::test_a_condition_that_changes": 21,
    "tests/rows/test_bisect.py::test_a_condition_that_does_not_fit": 4,
    "tests/rows/test_bisect.py::test_a_good_version": 4,
    "tests/rows/test_bisect.py::test_a_single_pass_is_refused": 4,
    "tests/rows/test_blame.py": 4,
    "tests/rows/test_blame.py::test_lines_replayed": 64,
    "tests/rows/test_changed_splits.py": 4,
    "tests/rows/test_changed_splits.py::test_changed_splits": 56,
    "tests/rows/test_changes_since.py": 6,
    "tests/rows/test_changes_since.py::test_changes_of_tables": 32,
    "tests/rows/test_diff_and_feeds.py::test_the_recorded": 3,
    "tests/rows/test_diff_everywhere.py": 40,
    "tests/rows/test_gaps.py": 4,
    "tests/rows/test_gaps.py::test_a_bisection_names": 8,
    "tests/rows/test_gaps.py::test_an_answer_over": 3,
    "tests/rows/test_gaps.py::test_every_answer": 10,
    "tests/rows/test_given_rows.py": 6,
    "tests/rows/test_logical_counts.py": 16,
    "tests/rows/test_pair_diff.py": 2,
    "tests/rows/test_profile.py": 4,
    "tests/rows/test_profile.py::test_numbers_of_samples": 4,
    "tests/rows/test_row_diff.py": 2,
    "tests/rows/test_row_history.py": 4,
    "tests/rows/test_row_history.py::test_the_history_has_the_rows_of_every": 48,
    "tests/rows/test_trace.py": 4,
    "tests/rows/test_trace.py::test_a_trace_is": 22,
    "tests/samples/test_samples.py::test_rows": 14,
    "tests/storage/test_hostile_stores.py": 6,
    "tests/storage/test_listings.py": 4,
    "tests/storage/test_masks.py::test_a_secret": 2,
    "tests/storage/test_replaced_while_read.py": 8,
    "tests/storage/test_storage.py::test_a_path_that_leaves": 3,
    "tests/storage/test_url_secrets.py::test_a_secret_of_a_mistyped": 6,
    "tests/table/test_altered.py": 8,
    "tests/table/test_altered.py::test_questions": 2,
    "tests/table/test_altered.py::test_the_newest_state": 10,
    "tests/table/test_bad_input.py": 6,
    "tests/table/test_bad_input.py::test_an_argument": 4,
    "tests/table/test_bad_input.py::test_what_stands_in_a_files": 12,
    "tests/table/test_bad_input.py::test_what_stands_in_a_hints": 8,
    "tests/table/test_branches.py": 3,
    "tests/table/test_branches.py::test_rows_of_a_branch": 8,
    "tests/table/test_branches.py::test_rows_that_differ": 6,
    "tests/table/test_changes.py": 2,
    "tests/table/test_changes.py::test_a_condition_gives": 64,
    "tests/table/test_changes.py::test_files_in_which": 8,
    "tests/table/test_changes_as_paimon.py": 18,
    "tests/table/test_contract.py": 4,
    "tests/table/test_hostile_text.py": 2,
    "tests/table/test_hostile_text.py::test_nothing": 4,
    "tests/table/test_hostile_text.py::test_what_is_wrong": 3,
    "tests/table/test_inspect_as_paimon.py": 10,
    "tests/table/test_inspect_rows_as_paimon.py": 16,
    "tests/table/test_interrupts.py": 2,
    "tests/table/test_interrupts.py::test_an_interrupted_call": 16,
    "tests/table/test_names.py": 4,
    "tests/table/test_names.py::test_such_names": 4,
    "tests/table/test_not_checked.py": 4,
    "tests/table/test_other_folders.py::test_a_path": 6,
    "tests/table/test_outputs.py": 4,
    "tests/table/test_path_forms.py::test_files_of_a_delta": 6,
    "tests/table/test_path_forms.py::test_files_of_an_iceberg": 9,
    "tests/table/test_path_forms.py::test_files_on_the_web": 4,
    "tests/table/test_pictures.py": 2,
    "tests/table/test_pictures.py::test_samples": 6,
    "tests/table/test_renamed_columns.py::test_every_call": 6,
    "tests/table/test_rounds.py": 2,
    "tests/table/test_rounds.py::test_a_call_waits": 46,
    "tests/table/test_rounds.py::test_a_table_opens": 48,
    "tests/table/test_rounds.py::test_sql_fetches": 6,
    "tests/table/test_secrets.py": 2,
    "tests/table/test_secrets.py::test_no_answer": 2,
    "tests/table/test_secrets.py::test_no_output": 4,
    "tests/table/test_secrets.py::test_reports": 2,
    "tests/table/test_secrets_in_logs.py": 3,
    "tests/table/test_secrets_in_logs.py::test_no_output": 3,
    "tests/table/test_shortfall.py": 16,
    "tests/table/test_split_identity.py::test_splits": 24,
    "tests/table/test_unread_versions.py": 15,
    "tests/table/test_verify.py::test_tables_of": 10,
    "tests/table/test_verify_as_read.py": 6,
    "tests/table/test_warnings.py::test_a_warning": 6,
    "tests/table/test_wide.py::test_what_is_drawn": 6,
    "tests/usage/test_usage.py::test_usage_of_random": 6,
    "tests/usage/test_usage.py::test_usage_of_tables": 8,
    "tests/usage/test_usage.py::test_what_conditions": 6,
    "tests/view/test_figures.py": 4,
    "tests/view/test_tracks.py": 4,
}
"""Functions with many cases, by how their ids begin: of each, the first case and then one of so many are in the quick
tier."""
PACKAGES = {"adlfs": "extras", "gcsfs": "extras", "s3fs": "extras"}
"""The markers of tests with a parameter that ends with such a name: the package of a client of a store."""
BRING = {
    "sessions": "SNAPSHOT_EXPLORER_SPARK=connect pytest -m spark, then =cluster (.ci/run runs a part of both)",
    "oracle": ".ci/oracles && export SNAPSHOT_EXPLORER_ORACLES=$PWD/.venv-oracles",
    "spark": "apt-get install openjdk-17-jre-headless (Java 17 or newer on the PATH, or in JAVA_HOME)",
    "stores": ".ci/stores (needs npm), apt-get install postgresql, and pip install -e '.[test-all]'",
    "extras": "pip install -e '.[test-all]'",
    "browser": "apt-get install chromium",
}
"""What brings what the tests of a marker need."""


def scope(nodeid):
    """Return the scope of a test: the one of its file, or the file."""
    return next((name for name, files in SCOPES.items() if nodeid.startswith(files)), nodeid.partition("::")[0])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """Return the number of workers of `-n auto`: one for each processor, but no more than share the work well."""
    return min(8, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give workers scope by scope, in the order of the tests."""
    from xdist.scheduler import LoadScopeScheduling

    class Scopes(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return scope(nodeid)

    config.option.loadscopereorder = False
    return Scopes(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Begin with what takes longest: workers then end at about the same time. Without Java a notebook is left out."""
    order = list(SCOPES)
    items.sort(key=lambda item: order.index(name) if (name := scope(item.nodeid)) in SCOPES else len(order))
    reason = spark_clusters.missing()
    for item in items:
        if reason and scope(item.nodeid) == "notebook-spark":
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_configure(config):
    """Record refusals, and start the kernels of notebooks on sockets of their own."""
    nbval.kernel.KernelManager = SocketKernelManager
    config.pluginmanager.register(RefusalRecorder())
    config.pluginmanager.register(tiers.Tiers(started=STARTED, places=PLACES, packages=PACKAGES, sampled=SAMPLED))


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect no garbage while tests are collected: all of it stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish():
    """Leave what is imported and collected out of garbage collections: half a million objects, 0.3 s each time.

    Only the end of Python collects them, after pytest's own last collections: DuckDB reports what is left over then.
    """
    gc.freeze()
    atexit.register(gc.unfreeze)


def pytest_terminal_summary(terminalreporter):
    """Write a line for each group of tests that were skipped: how many, and the command that brings what they need."""
    skipped = Counter()
    for report in terminalreporter.stats.get("skipped", ()):
        marker = next((name for name in BRING if name in getattr(report, "keywords", ())), None)
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        skipped[marker, BRING.get(marker) or reason.removeprefix("Skipped: ")] += 1
    for (marker, what), number in sorted(skipped.items(), key=str):
        line = (
            f"{number} tests marked {marker} were skipped. To run them: {what}"
            if marker
            else f"{number} skipped: {what}"
        )
        terminalreporter.write_line(line)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    """Fail where a skip would hide that something is missing: .ci/run asks for that."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("SNAPSHOT_EXPLORER_NO_SKIPS") and reporter and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _shortened(module, name):
    """Divide the seconds that a module waits by a hundred, and yield the real ones."""
    with pytest.MonkeyPatch.context() as patch:
        real = getattr(module, name)
        patch.setattr(module, name, real / 100)
        yield real


@pytest.fixture(scope="session", autouse=True)
def first_wait():
    """The real mean wait before a request to a storage is tried again."""
    yield from _shortened(retries, "FIRST_WAIT")


@pytest.fixture(scope="session", autouse=True)
def pauses():
    """The real pause before what a writer may be writing is read again."""
    yield from _shortened(missing_versions, "PAUSE_SECONDS")


@pytest.fixture
def real_pauses(pauses, monkeypatch):
    """Wait as long as users do: another process writes the table."""
    monkeypatch.setattr(missing_versions, "PAUSE_SECONDS", pauses)


@pytest.fixture
def caplog(caplog):
    """What the package and fsspec log: threads of other libraries, which other tests have left, log too."""
    is_of_the_test = lambda record: record.name.startswith(("snapshot_explorer", "fsspec"))  # noqa: E731
    caplog.handler.addFilter(is_of_the_test)
    yield caplog
    caplog.handler.removeFilter(is_of_the_test)


@pytest.fixture(scope="module", autouse=True)
def empty_memory():
    """Leave nothing in memory:// for other modules: each listing there looks through all files."""
    yield
    filesystem = fsspec.filesystem("memory")
    filesystem.store.clear()
    filesystem.pseudo_dirs[:] = [""]


@pytest.fixture
def memory_root():
    """The file system of memory:// and a folder in it that is this test's own."""
    filesystem = fsspec.filesystem("memory")
    root = f"/{uuid.uuid4().hex}"
    yield filesystem, root
    for path in [path for path in filesystem.store if path.startswith(f"{root}/")]:
        del filesystem.store[path]  # its rm looks through all paths for each file
    filesystem.pseudo_dirs[:] = [path for path in filesystem.pseudo_dirs if not path.startswith(root)]


@pytest.fixture
def register():
    """Make a file system class known to fsspec by its protocol, for this test."""
    known = []

    def under_its_protocol(kind):
        fsspec.register_implementation(kind.protocol, kind, clobber=True)
        known.append(kind.protocol)
        return kind

    yield under_its_protocol
    for protocol in known:
        _registry.pop(protocol, None)


@pytest.fixture
def counted(register):
    """The class of counted://, which reads what is in memory:// and counts."""
    return register(filesystems.counting())


@pytest.fixture
def readonly(register):
    """The class of readonly://, which reads the local disk and refuses every write."""
    return register(filesystems.read_only())


@pytest.fixture(scope="session")
def s3_endpoint():
    """The address of a real S3 API on the loopback interface."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # a line per request
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        import botocore.session

        # Each table opens a session of botocore, which parses the description of S3.
        patch.setattr(botocore.session, "create_loader", functools.cache(botocore.session.create_loader))
        yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(params=["own", "s3fs"])
def s3_client(request, monkeypatch):
    """What reads S3: requests of our own, or s3fs."""
    if request.param == "s3fs":
        monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    return request.param


@pytest.fixture
def s3(s3_endpoint):
    """A client of the S3 API, the name of a fresh bucket, and the storage options that open it."""
    import boto3

    options = {"key": "AKIATESTKEY", "secret": "not-a-real-secret", "endpoint_url": s3_endpoint}
    client = boto3.client(
        "s3",
        endpoint_url=s3_endpoint,
        aws_access_key_id=options["key"],
        aws_secret_access_key=options["secret"],
        region_name="us-east-1",
    )
    bucket = f"lake-{uuid.uuid4().hex}"
    client.create_bucket(Bucket=bucket)
    yield client, bucket, options
    client.close()


@pytest.fixture(scope="session")
def chromium():
    """A real chromium without a window; Playwright runs once in a process."""
    sync_api = pytest.importorskip("playwright.sync_api")
    # Without a graphics card the processor draws, and by far the fastest without GL, which only WebGL then gets.
    flags = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader-webgl", "--enable-unsafe-swiftshader"]
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        yield started
        started.close()


@pytest.fixture(scope="session")
def tab(chromium):
    """A page that tests use one after the other, with its errors and requests: a new page costs half a second."""
    page = chromium.new_page()
    page.errors, page.requests = [], []
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.on("request", lambda request: page.requests.append(request.url))
    yield page
    page.close()


@pytest.fixture
def blank_page(tab):
    """An empty page, on which the mouse is nowhere; an error in it fails the test."""
    tab.goto("about:blank")
    tab.mouse.move(-10, -10)
    tab.errors.clear()
    tab.requests.clear()
    yield tab
    assert tab.errors == []
