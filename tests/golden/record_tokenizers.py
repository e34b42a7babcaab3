"""record_tokenizers.py [DIRECTORY]
record_tokenizers.py --compare PROGRAM KIND FILE [FILE]

Trains small tokenizers of every kind with the Hugging Face library `tokenizers` on a text written here, encodes strings
that are known to be hard (scripts, emoji, combining marks, control characters, long words, nothing at all, bytes that
are not UTF-8), and records what our tokenizers must reproduce: tokenizers.json and tokenizers.npz, in the directory of
this file unless another is named.

With --compare, the same strings (and the text of this file) go through the library and through PROGRAM, which is
tests/golden/encode_strings.cc, with a real tokenizer that is too large to be kept here, and the number of strings with
the same ids and the same offsets is printed. KIND is json (a tokenizer.json), gpt2 (vocab.json and merges.txt), bert or
bert-cased (vocab.txt and the tokenizer.json of the same), or llama2c with a tokenizer.bin and the
tokenizer.json it was made from.

Needs `pip install tokenizers==0.23.3 numpy`; a minute:

    python3 tests/golden/record_tokenizers.py

tokenizers.json: for each name, the content of a tokenizer.json
tokenizers.npz, unsigned integers

  strings, sizes       the strings, one after the other, and their sizes in bytes
  NAME.which           the numbers of the strings that were encoded
  NAME.counts          how many tokens each has
  NAME.ids             of all tokens, in order
  NAME.begins, .sizes  where in its string a token begins, counted from where the one before began (plus 2^15), and its
                       size in bytes
  NAME.decoded, .decoded_sizes   the text that the tokens of every seventh of these strings are decoded to
"""
import base64
import json
import pathlib
import random
import struct
import subprocess
import sys
import unicodedata

import numpy
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)

TEXT = """The keys of a transformer are points in space, and attention selects the point that lies farthest in the
direction of the query. A key in the interior of the convex hull can't be selected by any query; it isn't the highest
for any direction. We'll say that it is unselectable, and they're right who ask: what does layer normalization do?
It's a projection onto a hyperplane, followed by scaling: all keys then lie on a sphere, and every point of a sphere is
a vertex. I've seen 12345 tokens, 67 of them 8.9% longer than 2024-01-31; you'd think they'd cost $1,000.00 each!
def forward(self, x, mask=None):\n    return self.norm(x + self.attention(x, mask))  # pre-norm\n\n
    for i in range(100):\n\t\tif (a[i] != b[i]) { continue; }\n
Größe, Öl und Übermut tun selten gut; straße. Où est l'élève français déjà allé? ¿Qué pasó mañana? naïve café résumé
Привет мир, как дела? Ключи и запросы. Γειά σου Κόσμε, τι κάνεις σήμερα; שלום עולם مرحبا بالعالم كيف حالك اليوم
नमस्ते दुनिया สวัสดีชาวโลก こんにちは世界、今日は良い天気ですね。你好，世界！今天天气很好。 안녕하세요 세계
😀 😃 👍🏽 👨‍👩‍👧‍👦 🇩🇪 ❤️ ½ ﬁ ﬂ Ⅳ ２０２４ ＡＢＣ e\u0301 a\u0308\u0323 …—–«»„“” ™ © ° µ ∑ √ ∞ ≤ 
The the THE then there these those this that. normalization normalized normalize norm norms. token tokens tokenizer.
"""
SCRIPTS = [
    (0x20, 0x7E), (0x20, 0x7E), (0xA0, 0x17F), (0x180, 0x24F), (0x250, 0x2AF), (0x2B0, 0x36F), (0x370, 0x3FF),
    (0x400, 0x4FF), (0x530, 0x5FF), (0x600, 0x6FF), (0x700, 0x7BF), (0x900, 0x97F), (0x980, 0xDFF), (0xE00, 0xEFF),
    (0xF00, 0xFFF), (0x1000, 0x10FF), (0x1100, 0x11FF), (0x1200, 0x139F), (0x1400, 0x167F), (0x1680, 0x17FF),
    (0x1E00, 0x1FFF), (0x2000, 0x206F), (0x2070, 0x20CF), (0x2100, 0x218F), (0x2190, 0x22FF), (0x2300, 0x2BFF),
    (0x2C00, 0x2E7F), (0x3000, 0x30FF), (0x3100, 0x33FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xA000, 0xABFF),
    (0xAC00, 0xD7A3), (0xE000, 0xE0FF), (0xF900, 0xFAFF), (0xFB00, 0xFDFF), (0xFE00, 0xFFFF), (0x10000, 0x101FF),
    (0x10300, 0x10FFF), (0x11000, 0x11FFF), (0x12000, 0x1247F), (0x1D000, 0x1D7FF), (0x1F000, 0x1F2FF),
    (0x1F300, 0x1F9FF), (0x20000, 0x2A6DF), (0x2F800, 0x2FA1F), (0xE0000, 0xE01EF), (0xF0000, 0xF00FF),
]
SPECIAL = ["[CLS]", "[SEP]", "[MASK]", "[UNK]", "<s>", "</s>", "<unk>", "<pad>", "<|endoftext|>", "<|begin_of_text|>",
           "<extra_id_0>", "<mask>", "<0x0A>", "<0x41>", "[mask]", "<S>", "added", "Added One", "wörd", "▁", "Ġ", "##ing"]
MARKS = [0x300, 0x301, 0x302, 0x303, 0x304, 0x307, 0x308, 0x30A, 0x30C, 0x323, 0x327, 0x328, 0x331, 0x345, 0x35C, 0x363,
         0x5B0, 0x5B4, 0x64B, 0x651, 0x670, 0x93C, 0x94D, 0xE38, 0xE48, 0x20D0, 0x20DD, 0x3099, 0x309A, 0xFE0F, 0x200D,
         0x1D165, 0x1F3FD, 0xE0101]
SPACES = [" ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\xa0", "\u1680", "\u2003",
          "\u2028", "\u2029", "\u202f", "\u205f", "\u3000", "\u200b", "\ufeff", "\u180e", "\u2581", " \u2581"]
CONTROLS = ["\x00", "\x01", "\x07", "\x08", "\x1b", "\x1f", "\x7f", "\x80", "\x9f", "\xad", "\u061c", "\u200c", "\u200d",
            "\u200e", "\u202e", "\u2060", "\u2066", "\ufff9", "\ufffc", "\ufffd", "\ufffe", "\uffff", "\U0010ffff",
            "\ue000", "\uf8ff", "\U000e0001"]
EMOJI = ["😀", "👍🏽", "👨‍👩‍👧‍👦", "🇩🇪", "🇩", "❤️", "☺", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "1️⃣", "🧑🏿‍🚀", "🫠", "©️", "‼️"]
INVALID = [b"\x80", b"\xbf", b"\xc0\xaf", b"\xc2", b"\xe2\x82", b"\xe2\x28\xa1", b"\xed\xa0\x80", b"\xed\xb0\x80",
           b"\xf0\x9f\x98", b"\xf0\x9f", b"\xf4\x90\x80\x80", b"\xf8\x88\x80\x80\x80", b"\xfe", b"\xff", b"\xe0\x80\x80",
           b"\xf0\x80\x80\x80", b"\xc3\x28", b"\xa0\xa1"]
BY_HAND = ["", " ", "  ", "\n", "a", " a", "a ", "  a  ", "I'm we'll IT'S it'ſ they'Re o'clock ''''", "don't", "\x00",
           "Hello, world!", " Hello  world ", "1234567890", "3.14159e-10", "x=1;y=2", "ＦＵＬＬＷＩＤＴＨ　ｔｅｘｔ", "ﬁﬂﬃ", "Ǆǅǆ",
           "İstanbul ISTANBUL ıstanbul", "ẞß", "ΑΣ ΑΣΣ ας", "Å Å Å", "가각힣 \u1100\u1161\u11a8", "e\u0301\u0323 e\u0323\u0301",
           "q\u0307\u0323", "a\u0315\u0300\u05ae\u0300b", "\u0344", "\u0958", "\u2126", "\ufb1d", "\U0001d15e", "ｶﾞ ﾊﾟ", "①⑩㍿㎞",
           "¼½¾²³", "a\u0301bc\u0308\u0327d", "नमस्ते क्षत्रिय", "ไทยภาษา", "العَرَبِيَّة", "עִבְרִית", "中文字符测试", "日本語のテキスト", "한국어 텍스트",
           "mixed中文English混合", "\u4e00\u3400\U00020000\uf900", "...!!!???", "a-b_c.d/e\\f", "https://example.com/?q=1&r=ä#x",
           "user@example.org", "#hashtag @mention", "C++ C# .NET", "«quotes» „low“ ‚single‘", "\t\tindented\n\t\tcode\n",
           "line1\nline2\r\nline3\rline4", "    four spaces", "trailing    ", "a\u200bb\u200cc\u200dd", "\ufeffBOM", "x\u0000y",
           "\U0001f468\u200d\U0001f469\u200d\U0001f467", "a" * 99, "a" * 100, "a" * 101, "ab" * 60, "é" * 100, "é" * 101,
           "normalization" * 20, "0" * 64, " " * 50, "\n" * 30, "!" * 40, "字" * 40, "e\u0301" * 60, "😀" * 30, "x" * 3000,
           "\u0301" * 20, "a" + "\u0301" * 30, "\u0f71\u0f72\u0f74" * 5, "the" * 400]


def tricky_strings(count=2200):
    """Bytes; the same in every run."""
    draw = random.Random(20240)
    words = TEXT.split()
    strings = [s.encode() for s in BY_HAND] + INVALID + [b"a" + s + b"b" for s in INVALID]

    # Characters of Unicode 14 only: libraries differ in how many of the later ones they know.
    def of_script(first, last):
        while True:
            c = chr(draw.randint(first, last))
            if unicodedata.category(c) != "Cn":
                return c

    def character():
        return of_script(*draw.choice(SCRIPTS))

    def word():
        kind = draw.random()
        if kind < 0.5:
            w = draw.choice(words)
            return draw.choice([w, w, w, w.upper(), w.capitalize(), w[: draw.randint(1, len(w))]])
        if kind < 0.65:
            first, last = draw.choice(SCRIPTS)
            return "".join(of_script(first, last) for _ in range(draw.randint(1, 5)))
        if kind < 0.75:
            return "".join(draw.choice(["e", "a", "o", "ä", "א", "ب", "क", "が", "字", "1", "ﬁ"]) +
                           "".join(chr(draw.choice(MARKS)) for _ in range(draw.randint(0, 3))) for _ in range(2))
        if kind < 0.82:
            return draw.choice(EMOJI)
        if kind < 0.88:
            return draw.choice(SPECIAL)
        if kind < 0.93:
            return draw.choice(CONTROLS)
        return "".join(character() for _ in range(draw.randint(1, 4)))

    while len(strings) < count:
        parts = []
        for _ in range(draw.randint(1, 5)):
            parts.append(word().encode("utf-8", "surrogatepass"))
            if draw.random() < 0.6:
                parts.append(draw.choice(SPACES[:1] * 12 + SPACES).encode())
            if draw.random() < 0.03:
                parts.append(draw.choice(INVALID))
        strings.append(b"".join(parts))
    return strings


def boundaries(data):
    """Where in the bytes the characters of data.decode(errors='replace') begin, and where the last one ends."""
    # Python tells for every malformed sequence where it begins and ends.
    begins, position = [], 0
    while position < len(data):
        try:
            good, bad = data[position:].decode(), None
        except UnicodeDecodeError as error:
            good, bad = data[position : position + error.start].decode(), error
        for c in good:
            begins.append(position)
            position += len(c.encode())
        if bad is not None:
            begins.append(position)
            position += bad.end - bad.start
    return begins + [len(data)]


def encode(tokenizer, data):
    """(id, begin, end), offsets in bytes."""
    encoding = tokenizer.encode(data.decode(errors="replace"))
    at = boundaries(data)
    last = len(at) - 1
    return [(i, at[min(b, last)], at[min(e, last)]) for i, (b, e) in zip(encoding.ids, encoding.offsets)]


def compare(program, kind, files):
    reference = gpt2(*files) if kind == "gpt2" else Tokenizer.from_file(files[-1])
    reference.no_truncation()
    reference.no_padding()
    text = pathlib.Path(__file__).read_bytes()
    strings = tricky_strings(20000) + text.splitlines(keepends=True) + [text]
    framed = b"".join(struct.pack("<I", len(s)) + s for s in strings)
    arguments = files if kind == "gpt2" else files[:1]
    output = subprocess.run([program, kind, *arguments], input=framed, stdout=subprocess.PIPE, check=True).stdout
    position, same_ids, same_all, shown = 0, 0, 0, 0
    for data in strings:
        (count,) = struct.unpack_from("<I", output, position)
        position += 4
        found = [struct.unpack_from("<III", output, position + 12 * i) for i in range(count)]
        position += 12 * count
        expected = encode(reference, data)
        same_ids += [t[0] for t in found] == [t[0] for t in expected]
        same_all += found == expected
        if found != expected and shown < 5:
            shown += 1
            at = next((i for i, (a, b) in enumerate(zip(found, expected)) if a != b), min(len(found), len(expected)))
            print(f"  {data[:80]!r}\n    token {at}: found {found[at:at+3]}, expected {expected[at:at+3]}")
    print(f"{files[0]}: {len(strings)} strings, same ids {same_ids}, same ids and offsets {same_all}")


def gpt2(vocabulary, merges):
    tokenizer = Tokenizer(models.BPE.from_file(vocabulary, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.add_special_tokens(["<|endoftext|>"])
    return tokenizer


# --- small tokenizers ---


def charsmap(rules):
    """What SentencePiece would compile of {sequence: replacement}: a double array (Darts), then the replacements."""
    trie, replacements, places = {}, b"", {}
    for sequence, replacement in rules.items():
        if replacement not in places:
            places[replacement] = len(replacements)
            replacements += replacement.encode() + b"\0"
        node = trie
        for byte in sequence.encode():
            node = node.setdefault(byte, {})
        node[0] = places[replacement]
    units, used = {0: 0}, {0}

    def place(node, at):
        """Children of the node in unit `at` go to base ^ label, for the first base that is free."""
        base = 1
        while any((base ^ label) in used for label in node) or (base ^ at) >= 1 << 21:
            base += 1
        offset = base ^ at
        units[at] |= offset << 10 | (1 << 8 if 0 in node else 0)
        used.update(base ^ label for label in node)
        for label, child in node.items():
            units[base ^ label] = child | 1 << 31 if label == 0 else label
        for label, child in node.items():
            if label != 0:
                place(child, base ^ label)

    place(trie, 0)
    size = (max(units) | 255) + 1
    packed = struct.pack(f"<{size}I", *(units.get(i, 0) for i in range(size)))
    return struct.pack("<I", len(packed)) + packed + replacements


RULES = {"ﬁ": "fi", "ﬂ": "fl", "½": "1/2", "…": "...", "Ⅳ": "IV", "①": "1", "e\u0301": "é", "a\u0308": "ä", "\t": " ",
         "\n": " ", "\r": " ", "\xa0": " ", "\u3000": " ", "\u200b": "", "\xad": "", "\x01": "", "\x07": "", "㍿": "株式会社",
         "Å": "Å", "\u0344": "\u0308\u0301", "ｶ": "カ", "\ufeff": "", "é": "é", "\u2028": " ", "\x7f": "", "ſ": "s"}
RULES.update({chr(0xFF01 + i): chr(0x21 + i) for i in range(94)})


def byte_level(prefix_space=False, **settings):
    tokenizer = Tokenizer(models.BPE(**settings))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix_space)
    return tokenizer


def split_byte_level(pattern, behavior="isolated", invert=False, **settings):
    tokenizer = Tokenizer(models.BPE(**settings))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), behavior, invert=invert),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    return tokenizer


def train(tokenizer, trainer):
    tokenizer.train_from_iterator(TEXT.splitlines(keepends=True), trainer)


def bpe_trainer(size, special, alphabet=(), **settings):
    return trainers.BpeTrainer(vocab_size=size, special_tokens=special, initial_alphabet=list(alphabet),
                               show_progress=False, **settings)


def template(tokenizer, single, pair, names):
    tokenizer.post_processor = processors.TemplateProcessing(
        single=single, pair=pair, special_tokens=[(n, tokenizer.token_to_id(n)) for n in names])


def make_tokenizers():
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    bytes_of = [f"<0x{i:02X}>" for i in range(256)]
    made = {}

    t = made["byte_bpe"] = byte_level()
    train(t, bpe_trainer(450, ["<|endoftext|>"], alphabet))
    t.post_processor = processors.ByteLevel(trim_offsets=True)
    t.decoder = decoders.ByteLevel()

    t = made["byte_bpe_roberta"] = byte_level(prefix_space=True)
    train(t, bpe_trainer(400, ["<s>", "<pad>", "</s>", "<unk>"], alphabet))
    t.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True, normalized=False)])
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    t.decoder = decoders.ByteLevel()

    llama3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
              r"|\s*[\r\n]+|\s+(?!\S)|\s+")
    t = made["byte_bpe_llama3"] = split_byte_level(llama3, ignore_merges=True)
    train(t, bpe_trainer(400, ["<|begin_of_text|>"], alphabet))
    template(t, "<|begin_of_text|> $A", "$A $B", ["<|begin_of_text|>"])
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), t.post_processor])
    t.decoder = decoders.ByteLevel()

    t = made["byte_bpe_qwen"] = split_byte_level(llama3.replace("{1,3}", ""), "removed", invert=True)
    t.normalizer = normalizers.NFC()
    train(t, bpe_trainer(400, ["<|endoftext|>"], alphabet))
    t.decoder = decoders.ByteLevel()

    t = made["wordpiece"] = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer()
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    train(t, trainers.WordPieceTrainer(vocab_size=700, show_progress=False,
                                       special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    template(t, "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", ["[CLS]", "[SEP]"])
    t.decoder = decoders.WordPiece()

    t = made["wordpiece_cased"] = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=30))
    t.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    train(t, trainers.WordPieceTrainer(vocab_size=500, show_progress=False,
                                       special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    t.decoder = decoders.WordPiece()

    def unigram_trainer(size, special):
        return trainers.UnigramTrainer(vocab_size=size, special_tokens=special, unk_token="<unk>", show_progress=False)

    t = made["unigram"] = Tokenizer(models.Unigram())
    t.normalizer = normalizers.Precompiled(charsmap(RULES))
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    train(t, unigram_trainer(500, ["<pad>", "</s>", "<unk>", "<extra_id_0>"]))
    template(t, "$A </s>", "$A </s> $B </s>", ["</s>"])
    t.decoder = decoders.Metaspace()

    t = made["unigram_bytes"] = Tokenizer(models.Unigram())
    t.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    train(t, unigram_trainer(650, ["<unk>", "<s>", "</s>"] + bytes_of))
    state = json.loads(t.to_str())
    state["model"]["byte_fallback"] = True
    made["unigram_bytes"] = Tokenizer.from_str(json.dumps(state))

    t = made["bpe_llama2"] = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    train(t, bpe_trainer(600, ["<unk>", "<s>", "</s>"] + bytes_of))
    template(t, "<s> $A", "<s> $A <s> $B", ["<s>"])
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                   decoders.Strip(" ", 1, 0)])

    t = made["bpe_mistral"] = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=False))
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    train(t, bpe_trainer(400, ["<unk>", "<s>", "</s>"], limit_alphabet=120))

    t = made["bpe_gemma"] = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    t.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    train(t, bpe_trainer(300, ["<unk>"], limit_alphabet=80))

    t = made["bpe_words"] = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    t.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.Strip(), normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation("contiguous"),
                                               pre_tokenizers.Digits(individual_digits=False)])
    train(t, bpe_trainer(400, ["<unk>"], end_of_word_suffix="</w>", limit_alphabet=100))
    t.add_tokens([AddedToken("added", single_word=True), AddedToken("Added One", rstrip=True, lstrip=True),
                  AddedToken("wörd", normalized=True), AddedToken("<s>", normalized=False, rstrip=True)])
    t.decoder = decoders.BPEDecoder()

    t = made["word_level"] = Tokenizer(models.WordLevel(unk_token="<unk>"))
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(r"\d+|-"), "merged_with_next"),
                                               pre_tokenizers.Punctuation("merged_with_previous"),
                                               pre_tokenizers.CharDelimiterSplit(" "), pre_tokenizers.Digits(True)])
    train(t, trainers.WordLevelTrainer(special_tokens=["<unk>"], show_progress=False))
    return made


def record(directory):
    strings = tricky_strings()
    arrays = {"strings": numpy.frombuffer(b"".join(strings), numpy.uint8),
              "sizes": numpy.array([len(s) for s in strings], numpy.uint16)}
    files = {}
    for name, tokenizer in make_tokenizers().items():
        files[name] = json.loads(tokenizer.to_str())
        # All for the three kinds that matter most, every third one for their variants.
        which = range(0, len(strings), 1 if name in ("byte_bpe", "wordpiece", "unigram") else 3)
        encoded = [encode(tokenizer, strings[i]) for i in which]
        steps = []
        for tokens in encoded:
            begins = [0] + [b for _, b, _ in tokens]
            steps += [b - a + 2**15 for a, b in zip(begins, begins[1:])]
        decoded = [tokenizer.decode([i for i, _, _ in tokens]).encode() for tokens in encoded[::7]]
        arrays[name + ".decoded"] = numpy.frombuffer(b"".join(decoded), numpy.uint8)
        arrays[name + ".decoded_sizes"] = numpy.array([len(d) for d in decoded], numpy.uint16)
        arrays[name + ".which"] = numpy.array(which, numpy.uint16)
        arrays[name + ".counts"] = numpy.array([len(tokens) for tokens in encoded], numpy.uint16)
        arrays[name + ".ids"] = numpy.array([i for tokens in encoded for i, _, _ in tokens], numpy.uint16)
        arrays[name + ".begins"] = numpy.array(steps, numpy.uint16)
        arrays[name + ".sizes"] = numpy.array([e - b for tokens in encoded for _, b, e in tokens], numpy.uint16)
        print(f"{name}: {len(encoded)} strings, {sum(map(len, encoded))} tokens")
    (directory / "tokenizers.json").write_text(json.dumps(files, ensure_ascii=False, separators=(",", ":")) + "\n")
    numpy.savez_compressed(directory / "tokenizers.npz", **arrays)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "--compare":
        compare(sys.argv[2], sys.argv[3], sys.argv[4:])
    else:
        record(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent)
