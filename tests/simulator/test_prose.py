from memorydojo.simulator.prose import passages, sentences


def test_sentences_keep_addresses_links_and_amounts_whole() -> None:
    text = "Write to mark.black-2134@gmail.com. See www.secure-systems-252.com. Pay $10.00 now, e.g. Today."
    assert sentences(text) == [
        "Write to mark.black-2134@gmail.com.",
        "See www.secure-systems-252.com.",
        "Pay $10.00 now, e.g. Today.",
    ]


def test_list_items_and_paragraphs_are_passages_and_records_are_none() -> None:
    assert passages('one\n- two\n- three\n\nid: 4\n{"a": 5}\nsix') == ["one", "two", "three", "six"]
