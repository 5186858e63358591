import { parseArgs } from 'node:util'
import { openEmbedded } from '../contracts/eventStore/openEmbedded.ts'
import { openOnStandIn } from '../contracts/eventStore/openEventStoreDb.ts'
import { SEED } from '../support/randomOf.ts'
import { differenceIn } from './check.ts'
import { differenceBetween } from './stores/compare.ts'
import { everySubject } from './subjects/index.ts'

const PROGRESS_MS = 5000
/** Scenarios on one pair of event stores. */
const SCENARIOS = 10

type OnCommands = (count: number) => void

/**
 * `npm run model -- --commands N --seed N [--only NAME]` sends random commands to two nodes of the service and compares
 * every reply, and everything that can be read, with a model. The exit code is 1 if they differ.
 */
const main = async (): Promise<void> => {
  const { values } = parseArgs({
    options: {
      commands: { type: 'string', default: '10000' },
      seed: { type: 'string', default: String(SEED) },
      only: { type: 'string' },
    },
  })
  const seed = Number(values.seed)
  const subjects = everySubject((subject) => ({
    name: subject.name,
    check: (commands: number, onCommands: OnCommands) =>
      differenceIn(subject, { commands, seed, onCommands }),
  }))
  const stores = {
    name: 'event stores',
    check: (commands: number, onCommands: OnCommands) => differenceOfStores({ commands, seed }, onCommands),
  }
  const wanted = [...subjects, stores].filter(({ name }) => values.only === undefined || name === values.only)
  const total = Number(values.commands)
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
