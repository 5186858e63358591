import type { OrgUsage } from '../../../client/index.ts'
import { ask } from '../../frame/api.ts'
import { useLoaded } from '../../frame/load.ts'
import { useRepeat, useReturn } from '../../frame/repeat.ts'
import { operator } from '../../frame/session.ts'
import { Failure, countText } from '../../parts/texts.tsx'
import { quotaOf } from './quota.tsx'

interface Node {
  readonly ready: boolean
  readonly reason: string | null
  readonly oldest_untaken_event_ms: number | null
  readonly skipped_facts: number
}

interface Check {
  readonly name: string
  readonly state: 'ok' | 'warning' | 'failed'
  readonly detail: string
  readonly fix: string | null
}

/** The pause between two looks at the node. */
const LOOK_MS = 30_000

/** An event waits longer than this only if the workers are overloaded or stopped. */
const WAITING_MS = 60_000

/** The problems that a person has to solve: of the quota, and of the node if the operator is signed in. */
export const Warnings = ({ usage }: { readonly usage: OrgUsage | undefined }) => {
  const node = useLoaded(
    async (signal) =>
      operator.value &&
      Promise.all([
        ask<Node>('GET /operator/status', { signal }),
        ask<readonly Check[]>('GET /operator/checks', { signal }),
      ]),
    [operator.value?.expires_at],
  )
  useRepeat(node.reload, LOOK_MS, Boolean(operator.value))
  useReturn(node.reload)
  const [status, checks] = node.data ?? []
  const texts = [
    ...(usage ? quotaTexts(usage) : []),
    ...(status ? nodeTexts(status) : []),
    ...(checks ?? [])
      .filter(({ state }) => state !== 'ok')
      .map(({ name, detail, fix }) => `${name}: ${detail}${fix ? `; ${fix}` : ''}`),
  ]
  const disk = checks?.find(({ name, state }) => name === 'disk' && state === 'ok')
  return (
    <>
      {node.error && <Failure error={node.error} retry={node.reload} />}
      {texts.length > 0 && (
        <section class="failure" aria-labelledby="warnings">
          <h2 id="warnings">Warnings</h2>
          <ul>
            {texts.map((text) => (
              <li key={text}>{text}</li>
            ))}
          </ul>
        </section>
      )}
      {disk && <p class="hint">Disk of the node: {disk.detail}</p>}
    </>
  )
}

const quotaTexts = (usage: OrgUsage): string[] =>
  quotaOf(usage)
    .filter(({ percent }) => percent > 90)
    .map(
      ({ name, used, limit, percent }) => `${name}: ${used} of ${limit} are used (${Math.round(percent)} %)`,
    )

const nodeTexts = ({ ready, reason, oldest_untaken_event_ms, skipped_facts }: Node): string[] => [
  ...(ready ? [] : [`The node is not ready: ${reason}`]),
  ...((oldest_untaken_event_ms ?? 0) > WAITING_MS
    ? [`An event has waited for ${Math.round((oldest_untaken_event_ms ?? 0) / 1000)} s for a worker`]
    : []),
  ...(skipped_facts > 0
    ? [`Read models lack ${countText(skipped_facts, 'fact')}: see the operator page`]
    : []),
]
