// The official Node SDK against a gateway: one line of JSON with what it saw.
// node client.mjs BASE_URL API_KEY; beside it, node_modules made by `npm ci`.
// With LATE_MS behind them: how a long answer fails that is waited for no longer than that.
import OpenAI from "openai";

const [baseURL, apiKey, lateMs] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const chat = {
  model: "toy",
  messages: [{ role: "user", content: "hello" }],
  max_tokens: 8,
  temperature: 0,
  ignore_eos: true,
};
const seen = {};

async function failure(asked) {
  try {
    await asked();
    return "none";
  } catch (error) {
    return `${error.constructor.name} ${error.status ?? ""}`.trim();
  }
}

const create = (more, options) => client.chat.completions.create({ ...chat, ...more }, options);
if (lateMs) {
  console.log(await failure(() => create({ max_tokens: 6000 }, { timeout: Number(lateMs) })));
  process.exit(0);
}

const whole = await client.chat.completions.create(chat);
seen.text = whole.choices[0].message.content;
seen.finish = whole.choices[0].finish_reason;
seen.tokens = whole.usage.completion_tokens;

seen.streamed = "";
for await (const part of await client.chat.completions.create({ ...chat, stream: true })) {
  seen.streamed += part.choices[0]?.delta?.content ?? "";
}

const several = await client.chat.completions.create({ ...chat, n: 2, temperature: 1, seed: 3 });
seen.choices = several.choices.map((choice) => choice.index);

seen.unknown = await failure(() => create({ model: "nobody" }));
seen.wrong = await failure(() => create({ temperature: -1 }));
seen.stranger = await failure(() =>
  new OpenAI({ baseURL, apiKey: "other", maxRetries: 0 }).chat.completions.create(chat),
);

const long = await create({ max_tokens: 6000, stream: true });
for await (const _ of long) {
  long.controller.abort();
  break;
}
console.log(JSON.stringify(seen));
