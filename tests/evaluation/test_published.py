import math

from pointmend.evaluation.published import published_rows, published_value


def test_the_papers_own_row_of_table_1_is_there() -> None:
    row = published_rows(1)["PUNet", "the paper", "p2m"]
    assert row[10_000, 0.01] == 2.04
    assert row[50_000, 0.03] == 4.45
    assert published_rows(1)["PUNet", "the paper", "cd"][100_000, 0.02] == 0.50


def test_every_table_has_its_rows() -> None:
    counts = {table: len({(g, m) for g, m, _ in published_rows(table)}) for table in (1, 2, 3, 4)}
    assert counts == {1: 33, 2: 25, 3: 10, 4: 6}
    for table in (1, 2, 3, 4):
        for key, row in published_rows(table).items():
            assert len(row) == (6 if key[1] == "SBD (+our)" else 9)


def test_what_the_paper_does_not_print_is_not_a_number() -> None:
    assert math.isnan(published_value(4, "PUNet", "SBD (+our)", "cd", (10_000, 0.03)))
    assert published_value(2, "laplace", "SBD", "p2m", (10_000, 0.02)) == 18.2
