import { execFile } from 'node:child_process'
import * as assert from 'uvu/assert'
import { suite } from './suite.ts'

interface Ended {
  readonly code: number
  readonly out: string
  readonly err: string
}

const run = (file: string, ...args: readonly string[]): Promise<Ended> =>
  new Promise((resolve) => {
    const child = execFile(process.execPath, [file, ...args], (_, out, err) =>
      resolve({ code: child.exitCode ?? -1, out, err }),
    )
  })

const programs = suite('the programs of the checkout')

const FILES = {
  soak: 'test/soak/main.ts',
  attacks: 'test/attacks/main.ts',
  model: 'test/model/main.ts',
  crash: 'test/crash/main.ts',
  bench: 'bench/main.ts',
} as const

for (const [name, options] of [
  ['soak', ['--minutes', '--seed', '--pause']],
  ['attacks', ['PATTERN', '--write']],
  ['model', ['--commands', '--seed', '--only', 'event stores']],
  ['crash', ['kills', 'stops', 'power', '--seed', '--states']],
  ['bench', ['NAME', 'appends', 'firstMinute']],
] as const) {
  programs(`npm run ${name} -- --help prints its usage and starts nothing`, async () => {
    const { code, out, err } = await run(FILES[name], '--help')
    assert.equal([code, err], [0, ''])
    for (const option of options) assert.match(out, option)
  })
}

programs('understand -h as --help', async () => {
  assert.equal(await run(FILES.bench, '-h'), await run(FILES.bench, '--help'))
})

for (const [name, args, problem] of [
  ['soak', ['--minute', '3'], "Unknown option '--minute'"],
  ['soak', ['--minutes', 'many'], 'expected --minutes to be a number above 0, got "many"'],
  ['soak', ['--seed', '1.5'], 'expected --seed to be a whole number from 0, got "1.5"'],
  ['soak', ['--pause', '0'], 'expected --pause to be a number above 0, got "0"'],
  ['soak', ['now'], 'expected no argument, got "now"'],
  ['attacks', ['--wirte'], "Unknown option '--wirte'"],
  ['attacks', ['nothing-like-it'], 'no file of test/attacks contains "nothing-like-it" in its path'],
  ['model', ['--commands', '0'], 'expected --commands to be a whole number from 1, got "0"'],
  ['model', ['--only', 'nothing'], 'expected --only to be one of '],
  ['model', ['--seed'], "Option '--seed <value>' argument missing"],
  ['crash', ['--nonsense'], "Unknown option '--nonsense'"],
  ['crash', ['kill'], 'expected a part to be one of kills, stops, power, got "kill"'],
  ['crash', ['kills', '--kills', 'x'], 'expected --kills to be a whole number from 1, got "x"'],
  ['crash', ['stops', '--on', 'mars'], 'expected --on to be one of embedded, cluster, got "mars"'],
  ['bench', ['append'], 'expected a name to be one of appends, '],
  ['bench', ['--fast'], "Unknown option '--fast'"],
] as const) {
  programs(`npm run ${name} -- ${args.join(' ')} is refused in one line`, async () => {
    const { code, out, err } = await run(FILES[name], ...args)
    assert.equal([code, out], [2, ''], err)
    assert.match(err, new RegExp(`^npm run ${name}: [^\n]+; see npm run ${name} -- --help\n$`))
    assert.match(err, problem)
  })
}

programs.run()
