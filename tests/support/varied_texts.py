"""Texts that find the corners of a tokenizer."""
# ruff: noqa: RUF001  (look-alike letters are the point)

import random

BY_HAND = [
    "",
    " ",
    "Hello, world!",
    "The capital of France is Paris.",
    "a  b   c    d     e",
    "   leading and trailing   ",
    "\n\n\n",
    "line one\nline two\r\nline three\n\n  indented",
    "\ttab\t\ttabs\t \t mixed",
    "end with spaces  \n",
    "1234567890",
    "3.14159 and 2,718,281 and 0x1F",
    "v1.2.3-rc4 at 12:34:56 on 2026-01-31",
    "½ ² Ⅷ ٣ 五",
    "don't I'll you're we've I'm she'd it's",
    "DON'T I'LL 'sad 'tis 'm' '",
    "rock'n'roll's",
    "def f(x: int) -> int:\n    return x * 2  # twice\n",
    "for (int i = 0; i < n; ++i) { a[i] += b[i]; }",
    '{"name": "Bob", "age": 30, "tags": ["a", "b"]}',
    "<div class='x'>&nbsp;</div>",
    "SELECT * FROM t WHERE a >= 10 AND b != 'x';",
    "#!/bin/sh\necho \"$HOME\" | grep -E '^/' && exit 0",
    "https://example.com/a/b?c=d&e=f#g",
    "user@example.com",
    "# Title\n\n- item *one*\n- item **two**\n\n```py\nx = 1\n```\n",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "snake_case camelCase PascalCase SCREAMING_CASE kebab-case",
    "antidisestablishmentarianism",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "!!!???...---===***",
    "(((((([[[[[[{{{{{{",
    "é è ê ë à ç ñ ü ö ß",
    "Ünïcödé nörmälïsed e\u0301 n\u0303",
    "Привет, как дела?",
    "Γειά σου Κόσμε",
    "שלום עולם",
    "مرحبا بالعالم",
    "नमस्ते दुनिया",
    "สวัสดีชาวโลก",
    "你好，世界！今天天气很好。",
    "日本語のテキストを確認する。カタカナとひらがな",
    "안녕하세요 세계",
    "中文English混合1234テスト",
    "😀",
    "😀😀😀 smile 🎉🎊",
    "👩‍👩‍👧‍👦 family 👍🏽 skin 🇫🇷 flag",
    "❤️ heart ☎ ✓ ✗ → ← ∑ ∫ √ ∞",
    "zero\u200bwidth\u200djoiner\ufeffmark",
    "no\u00a0break\u2003em\u3000ideographic\u2028line\u2029paragraph\u0085next",
    "replacement \ufffd character",
    "soft\u00adhyphen",
    "separators \x1c\x1e\x1f and bell \x07 and null \x00",
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
    "<|im_start|><|im_end|><|endoftext|>",
    "text<|im_end|>text <|im_end|> text",
    "<|im_star <|im_end| im_end|> <|IM_END|>",
    "<repo_name>x<file_sep>y<jupyter_code>z",
    "𝒳𝓎 mathematical 𝟙𝟚",
    "𠮷野家",
]

_ALPHABETS = [
    "abcdefghijklmnopqrstuvwxyz ETAOIN",
    "0123456789 .,-+e",
    " \n\t\r",
    "abc 123 \n'\"()[]{};:=+-*/<>",
    "аеиосуты АЕИО ",
    "的一是不了人我在有他这中大来上",
    "😀😂🎉👍🏽❤️ ab",
    "éüñßøå \u00a0\u3000",
    "'sdtrevml ",
    "<|im_startend>",
]


def varied_texts() -> list[str]:
    """About 110 texts, the same in every run."""
    random_source = random.Random(7)
    drawn = [
        "".join(random_source.choices(alphabet, k=random_source.randint(1, 60)))
        for alphabet in _ALPHABETS
        for _ in range(5)
    ]
    return BY_HAND + drawn
