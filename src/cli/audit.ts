import { setTimeout as delay } from 'node:timers/promises'
import type { AuditedFact, Page } from '../client/api.ts'
import { pauseOf } from '../client/wait.ts'
import { isAppError } from '../errors.ts'
import { onOneLine } from '../logger.ts'
import { exportAudit, verifyExport } from './auditFile.ts'
import type { Operator } from './operator.ts'
import { type CliCommand, command, type Printed } from './command.ts'
import { findEnv } from './tenants.ts'
import { isId } from '../ids.ts'
import { WrongUsage } from './wrongUsage.ts'

interface Replayed {
  readonly position: string
  readonly time: string
  readonly type: string
  readonly changes: Readonly<Record<string, { readonly before?: unknown; readonly after?: unknown }>>
}

const PATH = '/operator/audit'
/** The largest page of the API. */
const PAGE = 100
/** The interval at which new changes are read. */
const FOLLOW_MS = 1000

const filters = {
  actor: {
    value: 'ID',
    description: 'only changes by this credential, run or task; operator for the operator',
  },
  resource: { value: 'ID', description: 'only changes of this id, path of a file, key or domain' },
  type: { value: 'TYPE', description: 'only changes of this type, such as BuildDeployed' },
  env: {
    value: 'ENV',
    description: 'only changes in this environment: its id, also of a deleted one, or ORGANIZATION/NAME',
  },
  from: { value: 'TIME', description: 'only changes at this time or later' },
  to: { value: 'TIME', description: 'only changes before this time' },
} as const

type Filters = { readonly [Name in keyof typeof filters]: string | undefined }

/** The audit keeps the changes of deleted environments, which only their ids name. */
const envIdOf = async (service: Operator, text: string): Promise<string> =>
  isId(text) ? text : (await findEnv(service, text)).env_id

/**
 * Yields the changes from the oldest on, each once. With `follow`, it waits for new ones until the signal aborts, also while a
 * service that has replied before does not answer.
 */
async function* changes(
  service: Operator,
  { env, actor, resource, type, from, to }: Filters,
  { follow, signal }: { readonly follow: boolean; readonly signal: AbortSignal },
): AsyncGenerator<AuditedFact> {
  const env_id = env && (await envIdOf(service, env))
  const query = { env_id, actor, resource, type, from, to, limit: PAGE }
  let hasAnswered = false
  let failures = 0
  for (let after = 'start'; ;) {
    const request = { query: { ...query, after } }
    let page: readonly AuditedFact[]
    try {
      page = (await service.request<Page<AuditedFact>>('GET', PATH, request)).data
      hasAnswered = true
      failures = 0
    } catch (error) {
      if (!follow || !hasAnswered || !isAppError(error, 'unavailable')) throw error
      await delay(pauseOf(++failures, null), undefined, { signal }) // the service restarts, or an engine is away
      continue
    }
    yield* page
    after = page.at(-1)?.position ?? after
    if (page.length === PAGE) continue
    if (!follow) return
    await delay(FOLLOW_MS, undefined, { signal })
  }
}

const lineOf = (change: AuditedFact): Printed => {
  const { time, type, stream, actor } = change
  const by = [actor.credential_type ?? 'unknown', actor.credential_id, actor.ip && `from ${actor.ip}`]
  return {
    json: change,
    text: `${onOneLine([time, type, stream, 'by', ...by.filter(Boolean)].join('  '))}\n`,
  }
}

/** A value on one side of a change. */
const shown = (value: unknown): string => (value === undefined ? 'nothing' : JSON.stringify(value))

const replayedLine = (fact: Replayed): Printed => {
  const changed = Object.entries(fact.changes).map(
    ([path, { before, after }]) => `    ${onOneLine(`${path}: ${shown(before)} -> ${shown(after)}`)}\n`,
  )
  return { json: fact, text: `${fact.time}  ${fact.position}  ${fact.type}\n${changed.join('')}` }
}

export const auditCommands: readonly CliCommand[] = [
  command({
    group: 'audit',
    name: 'list',
    isDefault: true,
    summary: 'show who changed what',
    description:
      'Prints the changes of configuration, files and credentials, the oldest first, each with its actor. Secrets and ' +
      'content are shown as [redacted]. With --json, each line is one object.',
    options: {
      ...filters,
      follow: { description: 'wait for further changes until Ctrl-C, also while the service restarts' },
    },
    examples: [
      'svc audit --type BuildDeployed --from 2026-05-01',
      'svc audit --resource PROJECT_ID --json',
      'svc audit --follow --json',
    ],
    async run({ options, operator, print, signal }) {
      try {
        for await (const change of changes(operator(), options, { follow: options.follow, signal }))
          await print(lineOf(change))
      } catch (error) {
        if (!options.follow || !signal.aborted) throw error // else it was followed to its end
      }
    },
  }),
  command({
    group: 'audit',
    name: 'replay',
    summary: 'fold a stream again and show each change',
    description:
      'Prints the facts of a stream, or those about a resource, the oldest first. With --json, each line has the state ' +
      'after the fact and what the fact changed; without it, only the changes are shown.',
    options: {
      stream: { value: 'STREAM', description: 'the stream of the event log, such as project-ID' },
      resource: {
        value: 'ID',
        description:
          'an id, path of a file, key of a context variable or domain in the audit, or the id of a run, event or stream',
      },
      until: { value: 'TIME|POSITION', description: 'stop after this time or position' },
    },
    examples: [
      'svc audit replay --resource PROJECT_ID',
      'svc audit replay --stream project-PROJECT_ID --until 2026-05-01T10:00:00Z --json',
    ],
    async run({ options: { stream, resource, until }, operator, print }) {
      if ((stream === undefined) === (resource === undefined))
        throw new WrongUsage('expected either --stream or --resource; run svc audit replay --help')
      const query = { stream, resource, until }
      for await (const fact of operator().all<Replayed>(`${PATH}/replay`, query, ({ position }) => position))
        await print(replayedLine(fact))
    },
  }),
  command({
    group: 'audit',
    name: 'export',
    summary: 'write the audit to a file whose lines prove each other',
    description:
      'Writes the changes to a new file, the oldest first, one JSON object per line. Each line contains the hash of the ' +
      'line before, and the last line closes the file. Store the printed hash elsewhere: svc audit verify --hash then also ' +
      'detects a file that was written again as a whole.',
    arguments: { file: { description: 'the file to write; it must not exist' } },
    options: filters,
    examples: [
      'svc audit export audit.jsonl',
      'svc audit export may.jsonl --from 2026-05-01 --to 2026-06-01',
    ],
    async run({ args, options, operator, progress, signal }) {
      const bar = progress('changes')
      const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
      const found = changes(operator(), options, { follow: false, signal })
      const written = await exportAudit(args.file, { filters: given }, found, (count) =>
        bar.report(count, null),
      )
      return {
        json: written,
        text: `${written.facts} changes are in ${written.file}; its hash is ${written.hash}\n`,
      }
    },
  }),
  command({
    group: 'audit',
    name: 'verify',
    summary: 'check an exported file',
    description:
      'Checks every line of a file from svc audit export. Names the first line that was changed, added, removed, moved or ' +
      'cut, and ends with exit code 1. It does not connect to the service.',
    arguments: { file: { description: 'the file to check' } },
    options: { hash: { value: 'HASH', description: 'the hash that svc audit export has printed' } },
    examples: ['svc audit verify audit.jsonl', 'svc audit verify audit.jsonl --hash HASH --json'],
    async run({ args, options: { hash } }) {
      if (hash !== undefined && !/^[0-9a-f]{64}$/.test(hash))
        throw new WrongUsage('--hash: expected the 64 hexadecimal digits that svc audit export has printed')
      const result = await verifyExport(args.file, hash)
      if (!result.ok)
        return { json: result, text: `${args.file}: line ${result.line}: ${result.reason}\n`, failed: true }
      return { json: result, text: `${args.file} is intact: ${result.facts} changes, hash ${result.hash}\n` }
    },
  }),
]
