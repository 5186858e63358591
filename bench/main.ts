import { execFileSync } from 'node:child_process'
import { cpus } from 'node:os'
import { readArguments } from '../test/support/commandLine.ts'
import { type Figure, show } from './figure.ts'

const benches: Readonly<Record<string, () => Promise<Figure[]>>> = {
  appends: async () => (await import('./appends.ts')).appends(),
  endToEnd: async () => (await import('./endToEnd.ts')).endToEnd(),
  webhook: async () => (await import('./webhook.ts')).webhook(),
  tiers: async () => (await import('./tiers.ts')).tiers(),
  turns: async () => (await import('./turns.ts')).turns(),
  bursts: async () => (await import('./bursts.ts')).bursts(),
  twoTenants: async () => (await import('./twoTenants.ts')).twoTenants(),
  start: async () => (await import('./startLatency.ts')).startLatency(),
  requests: async () => (await import('./requests.ts')).requests(),
  lists: async () => (await import('./lists.ts')).lists(),
  dashboard: async () => (await import('./dashboard.ts')).dashboard(),
  rebuild: async () => (await import('./rebuild.ts')).rebuild(),
  projector: async () => (await import('./rebuild.ts')).projectorIntoServer(),
  sse: async () => (await import('./sse.ts')).sse(),
  eventStoreDb: async () => (await import('./eventStoreDb.ts')).eventStoreDb(),
  engines: async () => (await import('./engines.ts')).engines(),
  files: async () => (await import('./files.ts')).files(),
  dev: async () => (await import('./dev.ts')).dev(),
  memory: async () => (await import('./memory.ts')).memory(),
  firstMinute: async () => (await import('./firstMinute.ts')).firstMinute(),
  bundle: async () => (await import('./bundle.ts')).bundle(),
}

const commit = (): string => {
  try {
    return execFileSync('git', ['describe', '--always', '--dirty'], { encoding: 'utf8' }).trim()
  } catch {
    return 'unknown'
  }
}

const names = Object.keys(benches)

const HELP = `npm run bench [-- NAME…]

Prints each figure with its machine, Node version and commit. Without a name it measures everything.

  NAME  one of ${names.join(', ')}
`

const { positionals: wanted, oneOf } = readArguments('bench', HELP, {})
for (const name of wanted) oneOf('a name', name, names)
process.stdout.write(
  `${cpus().length} × ${cpus()[0]?.model.trim()}, Node ${process.version}, commit ${commit()}\n`,
)
for (const [name, bench] of Object.entries(benches)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue
  for (const figure of await bench()) process.stdout.write(`${show(figure)}\n`)
}
