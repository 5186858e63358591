import * as assert from 'uvu/assert'
import { suite } from '../support/suite.ts'
import { inspectionOf, messageOf } from './inspection.ts'

/** Returns the message for one function with the metadata, without file and function. */
const mistakeIn = async (metadata: string): Promise<string> => {
  const message = await messageOf({
    'a.js': `import { fn } from 'svc'\nexport const f = fn(${metadata}, () => 1)`,
  })
  return message.replace(/^a\.js: f: /, '')
}

const metadata = suite('metadata')

const refusals: [string, string][] = [
  ['{ retry: 11 }', 'Expected retry to be a whole number from 0 to 10, got 11'],
  ['{ retry: { attempts: 1.5 } }', 'Expected retry.attempts to be a whole number from 0 to 10, got 1.5'],
  [
    '{ retry: { attempts: 1, delay: 3600001 } }',
    'Expected retry.delay to be a whole number of milliseconds from 0 to 3600000, got 3600001',
  ],
  ['{ retry: "often" }', 'Expected retry to be a number or {attempts, delay}, got "often"'],
  ['{ once: "yes" }', 'Expected once to be true or false, got "yes"'],
  ['{ Once: true }', 'Expected the key once, got Once'],
  ['{ "on-event": "" }', 'Expected on-event to be a string of 1 to 1024 characters, got ""'],
  [
    '{ onEvent: "order:*" }',
    'Expected on-event to be the exact type of an event, not a pattern, got "order:*"',
  ],
  [
    '{ onEvent: "svc:call" }',
    'Expected on-event not to begin with "svc:", which is for events that control runs, got "svc:call"',
  ],
  [
    '{ onEvent: "x".repeat(257) }',
    `Expected on-event to have at most 256 characters, got "${'x'.repeat(79)}`,
  ],
  [
    '{ schedule: "60 * * * *" }',
    'Expected schedule.cron to be a cron expression of five fields, or six that begin with the seconds, got "60 * * * *" (minute: expected 0 to 59, got 60)',
  ],
  ['{ onEvent: "a", "on-event": "b" }', 'Expected either onEvent or on-event, which are one key, got both'],
  [
    '{ "secret-headers": ["a"], secretHeaders: ["b"] }',
    'Expected either secret-headers or secretHeaders, which are one key, got both',
  ],
  ['{ schedule: "0 0 30 2 *" }', 'Expected schedule.cron to match some day, got "0 0 30 2 *"'],
  [
    '{ schedule: "* * * * * * *" }',
    'Expected schedule.cron to be a cron expression of five fields, or six that begin with the seconds, got "* * * * * * *"',
  ],
  [
    '{ schedule: "60 0 3 * * *" }',
    'Expected schedule.cron to be a cron expression of five fields, or six that begin with the seconds, got "60 0 3 * * *" (second: expected 0 to 59, got 60)',
  ],
  [
    '{ schedule: { cron: "0 3 * * *", timezone: "Mars/Olympus" } }',
    'Expected schedule.timezone to be an IANA time zone such as "America/Los_Angeles", got "Mars/Olympus"',
  ],
  ...['PST', 'IST', 'CST', 'JST', 'BST', 'ACT'].map((zone): [string, string] => [
    `{ schedule: { cron: "0 3 * * *", timezone: "${zone}" } }`,
    `Expected schedule.timezone to be an IANA time zone such as "America/Los_Angeles", got "${zone}"`,
  ]),
  [
    '{ mcp: { service: "a b", description: "d" } }',
    'Expected mcp.service to consist of letters, digits, "-", "_" and ".", got "a b"',
  ],
  [
    '{ mcp: { service: "a" } }',
    'Expected mcp.description to be a string of at most 1024 characters, got undefined',
  ],
  [
    '{ mcp: { service: "a", description: " " } }',
    'Expected mcp.description to describe the tool to a model, got " "',
  ],
  ['{ mcp: { service: "a", description: "d", schema: {} } }', 'Expected the key mcp.input, got mcp.schema'],
  [
    '{ mcp: { service: "a", description: "d", input: [] } }',
    'Expected mcp.input to be a JSON Schema, which is an object, got []',
  ],
  [
    '{ mcp: { service: "a", description: "d", input: { type: "string" } } }',
    'Expected mcp.input.type to be "object", because the arguments of a tool have names, got "string"',
  ],
  [
    '{ mcp: { service: "a", description: "d", input: { type: "object", properties: { n: { type: "int" } } } } }',
    'Expected mcp.input.properties.n.type to be one of string, number, integer, boolean, object, array, null, or a list of them, got "int"',
  ],
  [
    '{ webhook: { path: "/x" } }',
    'Expected webhook.service to be a string of 1 to 1024 characters, got undefined',
  ],
  [
    '{ webhook: { service: "a b", path: "/x" } }',
    'Expected webhook.service to consist of letters, digits, "-", "_" and ".", got "a b"',
  ],
  [
    '{ webhook: { service: "a", path: "/../x" } }',
    'Expected webhook.path to be a URL path such as "/paid", got "/../x"',
  ],
  [
    '{ webhook: { service: "a", path: "/x", method: "TRACE" } }',
    'Expected webhook.method to be one of GET, PUT, PATCH, DELETE, POST, got "TRACE"',
  ],
  [
    '{ webhook: { service: "a", path: "/x", auth: "maybe" } }',
    'Expected webhook.auth to be "none" or "required", got "maybe"',
  ],
  [
    '{ webhook: { service: "a", path: "/x", cors: true } }',
    'Expected webhook.cors to be "*", or a list of 1 to 20 origins such as "https://shop.example" or "http://localhost:*", got true',
  ],
  [
    '{ webhook: { service: "a", path: "/x", cors: [] } }',
    'Expected webhook.cors to be "*", or a list of 1 to 20 origins such as "https://shop.example" or "http://localhost:*", got []',
  ],
  [
    '{ webhook: { service: "a", path: "/x", cors: ["shop.example"] } }',
    'Expected webhook.cors to be "*", or a list of 1 to 20 origins such as "https://shop.example" or "http://localhost:*", got ["shop.example"]',
  ],
  [
    '{ webhook: { service: "a", path: "/x", cors: ["*"] } }',
    'Expected webhook.cors to be "*", or a list of 1 to 20 origins such as "https://shop.example" or "http://localhost:*", got ["*"]',
  ],
  [
    '{ webhook: { service: "a", path: "/x", cors: ["https://a.example/path"] } }',
    'Expected webhook.cors to be "*", or a list of 1 to 20 origins such as "https://shop.example" or "http://localhost:*", got ["https://a.example/path"]',
  ],
  [
    '{ webhook: { service: "a", path: "/x", cors: [1] } }',
    'Expected webhook.cors to be "*", or a list of 1 to 20 origins such as "https://shop.example" or "http://localhost:*", got [1]',
  ],
  [
    '{ webhook: { service: "a", path: "/x", cors: "https://a.example" } }',
    'Expected webhook.cors to be "*", or a list of 1 to 20 origins such as "https://shop.example" or "http://localhost:*", got "https://a.example"',
  ],
  ['{ "secret-headers": "x-key" }', 'Expected secret-headers to be a list of at most 100 names, got "x-key"'],
  ['{ secretHeaders: ["x key"] }', 'Expected each of secret-headers to be a header name, got "x key"'],
  ['{ context: "KEY" }', 'Expected context to be a list of at most 100 keys of context variables, got "KEY"'],
  [
    '{ context: ["../KEY"] }',
    'Expected each of context to be 1 to 128 letters, digits, "_", "." and "-", beginning with a letter or "_", got "../KEY"',
  ],
  ['{ Context: [] }', 'Expected the key context, got Context'],
  ['{ "on-events": "a" }', 'Expected the key on-event, got on-events'],
  ['{ event: "a" }', 'Expected the key on-event, got event'],
  ['{ retries: 3 }', 'Expected the key retry, got retries'],
  ['{ cron: "0 3 * * *" }', 'Expected the key schedule, got cron'],
  ['{ timeoutMs: 100 }', 'Expected the key timeout, got timeoutMs'],
  [
    '{ schedule: { cron: "0 3 * * *", tz: "Europe/Berlin" } }',
    'Expected the key schedule.timezone, got schedule.tz',
  ],
  [
    '{ schedule: { cron: "0 3 * * *", timeZone: "Europe/Berlin" } }',
    'Expected the key schedule.timezone, got schedule.timeZone',
  ],
  ['{ retry: { attempts: 1, backoff: 2 } }', 'Expected the key retry.delay, got retry.backoff'],
  ['{ retry: { attempt: 1 } }', 'Expected the key retry.attempts, got retry.attempt'],
  [
    '{ retry: { attempts: 1, jitter: true } }',
    'Expected one of the keys retry.attempts, retry.delay, got retry.jitter',
  ],
  ['{ webhook: { service: "a", paht: "/x" } }', 'Expected the key webhook.path, got webhook.paht'],
  [
    '{ team: "blue" }',
    'Expected one of the keys on-event, retry, once, schedule, webhook, mcp, secret-headers, timeout, context, or one of your own that begins with x-, got team',
  ],
  [
    '{ "on-event": "a", "x-filter": new Map() }',
    'Expected metadata that can be converted to JSON: metadata["x-filter"] is a Map; use Object.fromEntries(map)',
  ],
  ['{ timeout: 0 }', 'Expected timeout to be a whole number of milliseconds from 1 to 900000, got 0'],
  ['{ on_event: "x" }', 'Expected the key on-event, got on_event'],
  ['[1]', 'Expected metadata to be an object, got [1]'],
  ['{ onEvent: "a\\nb" }', 'Expected on-event to have no control character, got "a\\nb"'],
  [
    `{ webhook: { service: "a", path: "/x", description: "\\x1b[2J" } }`,
    'Expected webhook.description to have no control characters but line breaks and tabs, got "\\u001b[2J"',
  ],
]
for (const [given, message] of refusals) {
  metadata(`is refused: ${given}`, async () => assert.is(await mistakeIn(given), message))
}

metadata('may nest 998 levels deep', async () => {
  const nested = (levels: number) =>
    `{ onEvent: "a", "x-deep": JSON.parse('['.repeat(${levels}) + ']'.repeat(${levels})) }`
  assert.match(await mistakeIn(nested(997)), /^ok: /)
  assert.match(
    await mistakeIn(nested(998)),
    /^Expected metadata that can be converted to JSON: metadata\["x-deep"\].* is nested more than 998 levels deep$/,
  )
})

metadata('may use camelCase, no retries, leap days and keys of the author', async () => {
  const given =
    '{ onEvent: "a", retry: { attempts: 0 }, schedule: "0 0 29 2 *", secretHeaders: ["X-A", "x-a"], "x-team": "blue" }'
  assert.is(
    await mistakeIn(given),
    `ok: ${JSON.stringify([
      {
        ns: 'a',
        var: 'f',
        on_event: 'a',
        retry: { attempts: 0, delay: 1000 },
        schedule: { cron: '0 0 29 2 *', timezone: 'UTC' },
        secret_headers: ['x-a'],
      },
    ])}`,
  )
})

metadata('keeps that a function starts once, and leaves out that it does not', async () => {
  assert.is(await mistakeIn('{ once: true }'), `ok: ${JSON.stringify([{ ns: 'a', var: 'f', once: true }])}`)
  assert.is(await mistakeIn('{ once: false }'), `ok: ${JSON.stringify([{ ns: 'a', var: 'f' }])}`)
})

metadata('keeps the keys of context variables, sorted and once, and an empty list too', async () => {
  assert.is(
    await mistakeIn('{ context: ["B", "A", "B"] }'),
    `ok: ${JSON.stringify([{ ns: 'a', var: 'f', context: ['A', 'B'] }])}`,
  )
  assert.is(await mistakeIn('{ context: [] }'), `ok: ${JSON.stringify([{ ns: 'a', var: 'f', context: [] }])}`)
})

metadata('refuses two webhooks at one address', async () => {
  const source =
    "import { fn } from 'svc'\nexport const f = fn({ webhook: { service: 's', path: 'p' } }, () => 1)"
  assert.is(
    await messageOf({ 'a.js': source, 'b.js': source }),
    'b/f: Expected a unique webhook, got POST s/p, which a/f has too',
  )
})

metadata('applies to each export of one handler', async () => {
  const source =
    "import { fn } from 'svc'\nconst h = () => 1\nexport const a = fn({ onEvent: 'a' }, h)\nexport const b = fn({ onEvent: 'b' }, h)"
  const inspection = await inspectionOf({ 'm.js': source })
  assert.equal(inspection, {
    ok: true,
    functions: [
      { ns: 'm', var: 'a', on_event: 'a' },
      { ns: 'm', var: 'b', on_event: 'b' },
    ],
  })
})

metadata.run()
