from vitcapr.metrics.retrieval_report import searched


def test_what_was_searched_is_read_from_both_kinds_of_protocol():
    whole = "pool:1000images,5000captions|captions:5|i2t:any-of-5|ties:pessimistic"
    assert searched([whole, whole]) == {
        "i2t": "1,000 images among 5,000 captions",
        "t2i": "5,000 captions among 1,000 images",
    }
    pools = "i2t:1000images of 10000captions,any own caption|t2i:5000captions of 1000images|ties:pessimistic"
    assert searched([pools]) == {
        "i2t": "1,000 images among 10,000 captions",
        "t2i": "5,000 captions among 1,000 images",
    }
    assert searched([whole, pools])["i2t"].splitlines() == [searched([one])["i2t"] for one in (whole, pools)]
    assert searched(["tok:ptb"])["t2i"] == "pool not told"
