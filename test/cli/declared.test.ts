import { setTimeout as delay } from 'node:timers/promises'
import * as assert from 'uvu/assert'
import { runCli } from '../../src/cli/cli.ts'
import { type CliCommand, command } from '../../src/cli/command.ts'
import type { Terminal } from '../../src/cli/terminal.ts'
import { WrongUsage } from '../../src/cli/wrongUsage.ts'
import { suite } from '../support/suite.ts'

const wholeNumber = (text: string): number => {
  if (!/^\d+$/.test(text)) throw new WrongUsage(`expected a whole number, got ${text}`)
  return Number(text)
}

let calls: unknown[] = []

const given = { name: 'given', summary: 's', description: 'Records what it gets.', examples: ['svc given'] }
const commands: readonly CliCommand[] = [
  command({
    ...given,
    arguments: {
      first: { description: 'exactly one' },
      rest: { description: 'none or more', count: 'any', parse: wholeNumber },
    },
    options: {
      limit: { value: 'N', description: 'a number', parse: wholeNumber },
      type: { value: 'TYPE', description: 'several', repeated: true },
      all: { description: 'a switch' },
      'no-wait': { description: 'a switch that is off' },
    },
    run({ args, options }) {
      const sum: number = args.rest.reduce((total, each) => total + each, options.limit ?? 0)
      calls.push({ args: { ...args }, options })
      return Promise.resolve({ json: { sum }, text: `${sum}\n` })
    },
  }),
  command({
    ...given,
    name: 'maybe',
    arguments: { one: { description: 'optional', count: 'optional' } },
    run: ({ args }) => Promise.resolve({ json: args.one ?? null, text: `${args.one}\n` }),
  }),
  command({
    ...given,
    name: 'some',
    arguments: { names: { description: 'one or more', count: 'some' } },
    run: ({ args }) => Promise.resolve({ json: args.names, text: `${args.names.join()}\n` }),
  }),
  command({
    ...given,
    name: 'follow',
    async run({ print, signal }) {
      for (let n = 1; !signal.aborted; n++) {
        await print({ json: { n }, text: `line ${n}\n` })
        await delay(1, undefined, { signal }).catch(() => {})
      }
    },
  }),
  command({
    ...given,
    name: 'wait',
    run: async ({ signal, progress }) => {
      progress('keys').report(1, 2)
      await delay(60_000, undefined, { signal })
    },
  }),
  command({
    ...given,
    group: 'things',
    name: 'destroy',
    confirms: true,
    async run({ confirm }) {
      await confirm('Destroy \x1b[2Jit?')
      calls.push('destroyed')
      return { json: {}, text: 'destroyed\n' }
    },
  }),
  command({
    ...given,
    name: 'maybe-destroy',
    confirms: 'sometimes',
    arguments: { what: { description: 'all or nothing' } },
    async run({ args, confirm }) {
      if (args.what === 'all') await confirm('Destroy all?')
      calls.push('destroyed')
      return { json: {}, text: 'destroyed\n' }
    },
  }),
  command({
    ...given,
    group: 'both',
    name: 'list',
    isDefault: true,
    arguments: { one: { description: 'optional', count: 'optional' } },
    run: ({ args }) => Promise.resolve({ json: args.one ?? null, text: `${args.one}\n` }),
  }),
  command({
    ...given,
    group: 'both',
    name: 'other',
    run: () => Promise.resolve({ json: 'other', text: 'other\n' }),
  }),
  command({
    ...given,
    name: 'check',
    run: () => Promise.resolve({ json: { ok: false }, text: 'not ok\n', failed: true }),
  }),
]

const run = async (
  args: readonly string[],
  terminal: Partial<Terminal> = {},
  signal = new AbortController().signal,
) => {
  calls = []
  const texts = { out: '', err: '' }
  const code = await runCli(args, {
    commands,
    signal,
    terminal: {
      out: (text) => Promise.resolve(void (texts.out += text)),
      err: (text) => void (texts.err += text),
      columns: Infinity,
      progressColumns: null,
      ask: null,
      askHidden: null,
      browse: null,
      input: () => Promise.resolve(''),
      paint: (_, text) => text,
      ...terminal,
    },
  })
  return { code, ...texts }
}

const test = suite('a declared command')

test('gets its arguments and options by name, parsed', async () => {
  const args = ['given', 'a', '1', '2', '--limit', '4', '--type', 'x', '--all', '--type', 'y', '--no-wait']
  assert.equal(await run(args), { code: 0, out: '7\n', err: '' })
  assert.equal(calls, [
    {
      args: { first: 'a', rest: [1, 2] },
      options: { limit: 4, type: ['x', 'y'], all: true, 'no-wait': true, json: false },
    },
  ])
})

test('that is the default of its group runs when no command of the group is named', async () => {
  assert.is((await run(['both'])).out, 'undefined\n')
  assert.is((await run(['both', 'x', '--json'])).out, '"x"\n')
  assert.is((await run(['both', 'list', 'x'])).out, 'x\n')
  assert.is((await run(['both', 'other'])).out, 'other\n')
  assert.match((await run(['both', 'x', '--help'])).out, 'Usage: svc both [options] [one]')
  assert.match((await run(['--help'])).out, /^ {2}svc both +s$/m)
})

test('gets nothing for what is left out', async () => {
  assert.equal(await run(['given', 'a']), { code: 0, out: '0\n', err: '' })
  assert.equal(calls, [
    {
      args: { first: 'a', rest: [] },
      options: { limit: undefined, type: [], all: false, 'no-wait': false, json: false },
    },
  ])
  assert.is((await run(['maybe', '--json'])).out, 'null\n')
  assert.is((await run(['maybe', 'x', '--json'])).out, '"x"\n')
  assert.is((await run(['some', 'x', 'y', '--json'])).out, '["x","y"]\n')
})

for (const [args, expected] of [
  [['given'], "svc: missing required argument 'first'; run svc given --help\n"],
  [['some'], "svc: missing required argument 'names'; run svc some --help\n"],
  [
    ['maybe', 'a', 'b'],
    "svc: too many arguments for 'maybe'. Expected 1 argument but got 2: a, b; run svc maybe --help\n",
  ],
  [
    ['given', 'a', '--limi', '3'],
    "svc: unknown option '--limi' (Did you mean --limit?); run svc given --help\n",
  ],
  [['given', 'a', '--limit'], "svc: option '--limit <N>' argument missing; run svc given --help\n"],
  [['given', 'a', '--limit', 'x'], 'svc: --limit: expected a whole number, got x\n'],
  [['given', 'a', 'b'], 'svc: rest: expected a whole number, got b\n'],
  [['folow'], "svc: unknown command 'folow' (Did you mean follow?); run svc --help\n"],
  [['folow', '--help'], "svc: unknown command 'folow' (Did you mean follow?); run svc --help\n"],
  [['things', 'destory'], "svc: unknown command 'destory' (Did you mean destroy?); run svc things --help\n"],
  [['help', 'things', 'nope'], "svc: unknown command 'nope'; run svc things --help\n"],
] as const)
  test(`refuses svc ${args.join(' ')} with code 2, and names what is wrong`, async () => {
    assert.equal(await run(args), { code: 2, out: '', err: expected })
    assert.equal(calls, [])
  })

test('explains itself with its arguments, options and examples', async () => {
  for (const args of [
    ['given', '--help'],
    ['help', 'given'],
    ['given', 'a', '--limit', '3', '-h'],
  ]) {
    const { code, out } = await run(args)
    assert.is(code, 0)
    for (const text of [
      'Usage: svc given [options] <first> [rest...]',
      '--limit <N>',
      '--json',
      'Examples:\n  svc given',
    ])
      assert.ok(out.includes(text), text)
  }
  assert.match((await run([])).out, /svc things destroy/)
  assert.match((await run(['things'])).out, /svc things destroy/)
})

test('prints lines while it follows something, and ends as done when it is interrupted', async () => {
  for (const json of [false, true]) {
    const interrupted = new AbortController()
    let lines = ''
    const out = (text: string): Promise<void> => {
      lines += text
      if (lines.split('\n').length > 3) interrupted.abort()
      return Promise.resolve()
    }
    const { code, err } = await run(['follow', ...(json ? ['--json'] : [])], { out }, interrupted.signal)
    assert.equal([code, err], [0, ''])
    assert.is(lines, json ? '{"n":1}\n{"n":2}\n{"n":3}\n' : 'line 1\nline 2\nline 3\n')
  }
})

test('that is interrupted before its end has failed, and leaves no progress bar', async () => {
  const interrupted = new AbortController()
  let shown = ''
  const err = (text: string): void => {
    shown += text
    interrupted.abort()
  }
  const { code } = await run(['wait'], { err, progressColumns: 80 }, interrupted.signal)
  assert.is(code, 1)
  assert.ok(shown.endsWith('1 of 2 keys\r\x1b[Ksvc: interrupted\n'), shown)
})

test('with a failed result prints it and ends with code 1', async () => {
  assert.equal(await run(['check', '--json']), { code: 1, out: '{"ok":false}\n', err: '' })
})

const confirmed = suite('a command that destroys something')

confirmed('is refused without --yes where nobody can be asked', async () => {
  const { code, err } = await run(['things', 'destroy'])
  assert.equal([code, calls], [2, []])
  assert.match(err, '--yes')
})

confirmed('is refused only where it has to ask, if that depends on what it finds', async () => {
  assert.is((await run(['maybe-destroy', 'nothing'])).code, 0)
  calls = []
  const { code, err } = await run(['maybe-destroy', 'all'])
  assert.equal([code, calls, err], [1, [], 'svc: Destroy all? Repeat the command with --yes\n'])
  assert.is((await run(['maybe-destroy', 'all', '--yes'])).code, 0)
})

confirmed('asks nobody with --yes', async () => {
  assert.is((await run(['things', 'destroy', '--yes'])).code, 0)
  assert.equal(calls, ['destroyed'])
})

for (const [answer, isDone] of [
  ['y', true],
  ['YES', true],
  ['n', false],
  ['', false],
  ['yesterday', false],
] as const)
  confirmed(`is ${isDone ? 'done' : 'not done'} after the answer "${answer}"`, async () => {
    let asked = ''
    const ask = (question: string) => {
      asked = question
      return Promise.resolve(answer)
    }
    const { code } = await run(['things', 'destroy'], { ask })
    assert.equal([code, calls], isDone ? [0, ['destroyed']] : [1, []])
    assert.is(asked, 'Destroy \\u001b[2Jit? [y/N] ')
  })

test.run()
confirmed.run()
