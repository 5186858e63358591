import { type Bundle, textOfMessage } from '../bundle/bundle.ts'
import type { DeployedBuild } from '../client/api.ts'
import { onOneLine } from '../logger.ts'
import type { BundledFunction } from './deployBundle.ts'
import { bytes } from './figures.ts'
import type { Column } from './table.ts'

/** A build above this size is slow to upload and to start, so its largest inputs are listed. */
const REPORTED_BYTES = 1_000_000
const LARGEST = 10

/** The columns of a list of functions. */
export const FUNCTION_COLUMNS: readonly Column<BundledFunction>[] = [
  { title: 'FUNCTION', of: ({ fn }) => fn },
  { title: 'STARTED BY', of: triggersText, cut: true },
]

/** The triggers of a function, else `call`. */
export function triggersText({ on_event, schedule, webhook, mcp }: BundledFunction): string {
  const triggers = [
    ...(on_event === undefined ? [] : [`event ${on_event}`]),
    ...(schedule ? [`schedule ${schedule.cron} ${schedule.timezone}`] : []),
    ...(webhook ? [`webhook ${webhook.method} ${webhook.service}${webhook.path}`] : []),
    ...(mcp ? [`tool of ${mcp.service}`] : []),
  ]
  return triggers.length === 0 ? 'call' : triggers.join(', ')
}

/** The difference of functions, one per line. */
export const changesText = ({ added, removed, changed }: DeployedBuild['changes']): string =>
  [
    ...added.map((fn) => `  + ${fn}`),
    ...changed.map((fn) => `  ~ ${fn}`),
    ...removed.map((fn) => `  - ${fn}`),
  ]
    .map((line) => `${onOneLine(line)}\n`)
    .join('')

/** The largest inputs of a big build; empty for other builds. */
export const largestInputs = ({ zip, inputs }: Bundle): Bundle['inputs'] =>
  zip.length > REPORTED_BYTES ? inputs.slice(0, LARGEST) : []

export const inputsText = (inputs: Bundle['inputs']): string =>
  inputs.length === 0
    ? ''
    : `The build is large. Its largest inputs:\n${inputs.map((input) => onOneLine(`  ${bytes(input.bytes).padStart(9)}  ${input.path}`) + '\n').join('')}`

export const warningsText = (warnings: readonly string[]): string =>
  warnings.map((warning) => `warning: ${warning}\n`).join('')

export const warningsOf = ({ warnings }: Bundle): readonly string[] => warnings.map(textOfMessage)
