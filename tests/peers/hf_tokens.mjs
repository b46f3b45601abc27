// Encodes texts with Hugging Face's tokenizers, as llama_tokens does with llama.cpp's library.
//
//     node hf_tokens.mjs PACKAGE TOKENIZER.json TEXTS
//
// PACKAGE is the folder of the npm package @huggingface/tokenizers, which @huggingface/transformers uses.
import fs from 'fs';
import path from 'path';

const [folder, json, file] = process.argv.slice(2);
const { Tokenizer } = await import(path.resolve(folder, 'dist/tokenizers.mjs'));
const tokenizer = new Tokenizer(JSON.parse(fs.readFileSync(json, 'utf8')), {});
const texts = fs.readFileSync(file);
for (let at = 0, end; at < texts.length; at = end) {
  end = at + 4 + texts.readUInt32LE(at);
  console.log(tokenizer.encode(texts.toString('utf8', at + 4, end), { add_special_tokens: false }).ids.join(' '));
}
