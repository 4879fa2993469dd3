"""A tiny language model with random weights, served by transformers: serve.py FOLDER PORT PROMPT...

Says in its first line how many tokens each prompt is, by the model's tokenizer and its template of chats.
"""

import os
import sys

os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"}

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers.cli.transformers import main

folder, port, *prompts = sys.argv[1:]

tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
trainer = trainers.BpeTrainer(
    vocab_size=400,
    special_tokens=["<s>", "</s>", "<|user|>", "<|assistant|>"],
    initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    # Its bar is drawn on the standard output, which has the counts.
    show_progress=False,
)
tokenizer.train_from_iterator(["the quick brown fox jumps over the lazy dog and many other people"] * 50, trainer)
fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="</s>")
fast.chat_template = (
    "<s>{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
fast.save_pretrained(folder)

torch.manual_seed(7)
config = LlamaConfig(
    vocab_size=len(fast),
    hidden_size=64,
    intermediate_size=128,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=4,
    max_position_embeddings=4096,
    bos_token_id=0,
    # No answer ends before its limit.
    eos_token_id=None,
    pad_token_id=1,
)
LlamaForCausalLM(config).save_pretrained(folder)

chats = ([{"role": "user", "content": prompt}] for prompt in prompts)
counts = [len(fast.apply_chat_template(chat, add_generation_prompt=True, return_dict=False)) for chat in chats]
print(*counts, flush=True)
# Nobody reads what comes later.
os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

sys.argv = ["transformers", "serve", folder, "--host", "127.0.0.1", "--port", port, "--device", "cpu"]
main()
