import { openEmbedded } from '../contracts/eventStore/openEmbedded.ts'
import { openOnStandIn } from '../contracts/eventStore/openEventStoreDb.ts'
import { readArguments } from '../support/commandLine.ts'
import { SEED } from '../support/randomOf.ts'
import { differenceIn } from './check.ts'
import { differenceBetween } from './stores/compare.ts'
import { everySubject } from './subjects/index.ts'

const PROGRESS_MS = 5000
/** Scenarios on one pair of event stores. */
const SCENARIOS = 10

/** The name of the comparison of two event stores. */
const STORES = 'event stores'

type OnCommands = (count: number) => void

const HELP = `npm run model [-- options]

Sends random commands to two nodes of the service, and compares every reply and everything that can be read with a model.
The exit code is 1 if they differ.

  --commands N  number of commands (default: 10000)
  --seed N      the seed (default: a new one)
  --only NAME   only this subject: NAMES
`

const main = async (): Promise<void> => {
  const names = [...everySubject(({ name }) => name), STORES]
  const { values, positionals, refuse, oneOf, wholeNumber } = readArguments(
    'model',
    HELP.replace('NAMES', names.join(', ')),
    {
      commands: { type: 'string', default: '10000' },
      seed: { type: 'string', default: String(SEED) },
      only: { type: 'string' },
    },
  )
  const [extra] = positionals
  if (extra !== undefined) refuse(`expected no argument, got ${JSON.stringify(extra)}`)
  if (values.only !== undefined) oneOf('--only', values.only, names)
  const seed = wholeNumber('seed', values.seed, 0)
  const subjects = everySubject((subject) => ({
    name: subject.name,
    check: (commands: number, onCommands: OnCommands) =>
      differenceIn(subject, { commands, seed, onCommands }),
  }))
  const stores = {
    name: STORES,
    check: (commands: number, onCommands: OnCommands) => differenceOfStores({ commands, seed }, onCommands),
  }
  const wanted = [...subjects, stores].filter(({ name }) => values.only === undefined || name === values.only)
  const total = wholeNumber('commands', values.commands)
  const began = performance.now()
  let answered = 0
  const report = (): void => {
    const seconds = (performance.now() - began) / 1000
    process.stdout.write(
      `${answered} of ${total} commands, ${Math.round(answered / seconds)} per second, seed ${seed}\n`,
    )
  }
  const timer = setInterval(report, PROGRESS_MS)
  const differences: string[] = []
  const checked = wanted.map(async ({ name, check }) => {
    let own = 0
    const difference = await check(Math.ceil(total / wanted.length), (count) => {
      own += count
      answered += count
    })
    process.stdout.write(`${name}: ${own} commands, ${difference === null ? 0 : 1} differences\n`)
    if (difference !== null) differences.push(difference)
  })
  await Promise.all(checked)
  clearInterval(timer)
  report()
  for (const difference of differences) process.stdout.write(`\n${difference}\n`)
  process.stdout.write(`${differences.length} differences\n`)
  process.exitCode = differences.length === 0 ? 0 : 1
}

/** Compares the embedded event store with EventStoreDB until enough commands were answered. */
const differenceOfStores = async (
  { commands, seed }: { commands: number; seed: number },
  onCommands: OnCommands,
): Promise<string | null> => {
  let answered = 0
  for (let round = 0; answered < commands; round++) {
    const stores = [openEmbedded(), await openOnStandIn()] as const
    const difference = await differenceBetween(
      stores,
      { scenarios: SCENARIOS, seed: (seed + round) | 0 },
      (count) => {
        answered += count
        onCommands(count)
      },
    )
    for (const { close } of stores) await close()
    if (difference !== null) return difference
  }
  return null
}

await main()
