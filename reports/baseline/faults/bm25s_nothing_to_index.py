import bm25s

for corpus in ([""], ["it is as it is"], ["?!..."]):
    try:
        bm25s.BM25().index(bm25s.tokenize(corpus, show_progress=False), show_progress=False)
        print("indexed")
    except ValueError as error:
        print(str(error)[:18])
# expected: indexed indexed indexed
# seen: max() arg is an em max() arg is an em max() arg is an em
