"""A small last batch is served from memory, and always equals what the file has."""


def test_a_small_last_batch_is_held(lab):
    log = lab.open()
    lab.append(log, b"first")
    lab.append(log, b"second")
    piece = log.read(1, 10_000)
    assert piece.held is not None
    assert piece.held == piece.read()


def test_earlier_batches_and_runs_of_batches_come_from_the_file(lab):
    log = lab.open()
    lab.append(log, b"first")
    lab.append(log, b"second")
    assert log.read(0, 10_000).held is None
    assert log.read(0, 80).held is None


def test_a_large_last_batch_is_not_held(lab):
    log = lab.open()
    lab.append(log, b"x" * 5000)
    piece = log.read(0, 10_000)
    assert piece.held is None
    assert piece.size > 5000


def test_a_batch_that_is_cut_away_is_forgotten(lab):
    log = lab.open()
    lab.append(log, b"first")
    lab.append(log, b"of a leader that lost", leader_epoch=0)
    log.truncate_to(1)
    lab.append(log, b"of its successor", leader_epoch=1)
    piece = log.read(1, 10_000)
    assert b"successor" in piece.read()
    assert piece.held == piece.read()


def test_a_sealed_segment_holds_nothing(lab):
    log = lab.open()
    lab.append(log, b"first")
    log.roll()
    lab.append(log, b"second")
    assert log.read(0, 10_000, up_to_offset=1).held is None
