"""What a registry says of a schema, as people read it."""

from headrace.cli.view.schemas import reasons


def test_a_sentence_of_the_registry_keeps_its_quotation_marks():
    message = "Invalid schema {…}, details: Syntax error at 1:40: expected a number but was ';'"
    assert list(reasons([message])) == [message]


def test_of_a_difference_the_description_is_left():
    message = """{errorType:"X", description:"The field 'b' is missing", additionalInfo:"b"}"""
    assert list(reasons([message, "{oldSchema: 'x'}"])) == ["The field 'b' is missing"]
