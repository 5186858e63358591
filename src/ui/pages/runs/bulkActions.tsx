import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import type { Pagination, Run, RunStatus } from '../../../client/index.ts'
import { randomKey } from '../../../client/randomKey.ts'
import { api, isFinalRefusal, textOf } from '../../frame/api.ts'
import { reportFailed } from '../../frame/notices.tsx'
import { together } from '../../frame/readAll.ts'
import { refusalOf } from '../../frame/session.ts'
import { linkTo } from '../../frame/router.ts'
import { Action } from '../../parts/action.tsx'
import { Button } from '../../parts/button.tsx'
import { Status, countText } from '../../parts/texts.tsx'

/** The runs that one action can change. */
const MOST = 1000
/** The runs that a preview names. */
const NAMED = 8

interface Props {
  readonly picked: ReadonlyMap<string, Run>
  /** The query of the page. */
  readonly asked: Readonly<Record<string, string>>
  /** What the page says of the runs that match; undefined until it is loaded. */
  readonly matching: Pick<Pagination, 'total' | 'searched_to'> | undefined
  /** Where they are, in words. */
  readonly place: string
  readonly onPick: (runs: readonly Run[]) => void
  /** Receives the runs that no longer have to be selected. */
  readonly onDone: (runs: readonly Run[]) => void
}

/** Whether a run can still be cancelled. */
export const canCancel = ({ status }: Pick<Run, 'status'>): boolean =>
  status === 'running' || status === 'pending_retry'

/** A search that has not looked at all runs does not know their number. */
const numberText = ({ total, searched_to }: NonNullable<Props['matching']>): string =>
  searched_to === undefined && total <= MOST
    ? `all ${total.toLocaleString('en')}`
    : `up to ${MOST.toLocaleString('en')}`

/** Replays or cancels the selected runs, after a preview of them. */
export const BulkActions = ({ picked, asked, matching, place, onPick, onDone }: Props) => {
  const done = useSignal(0)
  /** The keys of the requests whose outcome is unknown. They outlast the dialog: a later opening must not do again what was done. */
  const keys = useRef(new Map<string, string>())
  const isPicking = useSignal(false)
  const runs = [...picked.values()]
  const active = runs.filter(canCancel)

  const pickMatching = async (): Promise<void> => {
    isPicking.value = true
    try {
      const found: Run[] = []
      for await (const run of api.runs.all(asked)) {
        found.push(run)
        if (found.length === MOST) break
      }
      onPick(found)
    } catch (error) {
      reportFailed(`The runs were not selected: ${textOf(error)}`)
    } finally {
      isPicking.value = false
    }
  }

  const forEach =
    (affected: readonly Run[], send: (run: Run, key: string) => Promise<unknown>, did: string) =>
    async () => {
      done.value = 0
      const succeeded: Run[] = []
      const failures: string[] = []
      await together(affected, async (run) => {
        const request = `${did} ${run.run_id}`
        const key = keys.current.get(request) ?? randomKey()
        keys.current.set(request, key)
        try {
          await send(run, key)
          keys.current.delete(request)
          succeeded.push(run)
          done.value++
        } catch (error) {
          if (isFinalRefusal(error)) keys.current.delete(request)
          failures.push(textOf(error))
        }
      })
      if (failures.length > 0) {
        done.value = 0
        onDone(succeeded)
        throw new Error(
          `${failures.length} of ${affected.length} requests failed, the first with: ${failures[0]} The others are no longer ` +
            'selected: a repetition does nothing twice.',
        )
      }
      onDone(runs)
      return `${did} ${countText(affected.length, 'run')}.`
    }

  return (
    <div class="toolbar" role="toolbar" aria-label="Selected runs">
      <span aria-live="polite">{runs.length === 0 ? 'No run is selected' : `${runs.length} selected`}</span>
      {matching && matching.total > 0 && (
        <Button class="plain" isOff={isPicking.value} onClick={() => void pickMatching()}>
          {isPicking.value ? 'Selecting…' : `Select ${numberText(matching)} ${place}`}
        </Button>
      )}
      {runs.length > 0 && (
        <>
          <button type="button" class="plain" onClick={() => onPick([])}>
            Select none
          </button>
          <Action
            label={`Replay ${runs.length}`}
            does="Runs each function again with the same input, on the build that is deployed now."
            refusal={refusalOf('event', 'create', 'svc:replay')}
            run={forEach(
              runs,
              (run, idempotencyKey) =>
                api.open('POST /v1/runs/{run_id}/replay', { path: { run_id: run.run_id }, idempotencyKey }),
              'Replayed',
            )}
          >
            <Preview runs={runs} done={done.value} />
          </Action>
          <Action
            label={`Cancel ${active.length}`}
            does="Cancels the selected runs that are running or wait for a retry. Ended runs do not change."
            isDangerous
            refusal={
              refusalOf('event', 'create', 'svc:cancel') ??
              (active.length === 0 ? 'All selected runs have ended' : undefined)
            }
            run={forEach(
              active,
              (run, idempotencyKey) =>
                api.open('POST /v1/runs/{run_id}/cancel', { path: { run_id: run.run_id }, idempotencyKey }),
              'Cancelled',
            )}
          >
            <Preview runs={active} done={done.value} />
          </Action>
        </>
      )}
    </div>
  )
}

const Preview = ({ runs, done }: { readonly runs: readonly Run[]; readonly done: number }) => {
  const counts = new Map<RunStatus, number>()
  for (const { status } of runs) counts.set(status, (counts.get(status) ?? 0) + 1)
  return (
    <>
      <ul class="counts">
        {[...counts].map(([status, count]) => (
          <li key={status}>
            {count} <Status status={status} />
          </li>
        ))}
      </ul>
      <ul>
        {runs.slice(0, NAMED).map(({ run_id, fn }) => (
          <li key={run_id}>
            <a href={linkTo(`/runs/${run_id}`)} target="_blank" rel="noreferrer">
              {fn ?? 'Evaluated code'}
            </a>{' '}
            <code>{run_id}</code>
          </li>
        ))}
        {runs.length > NAMED && <li>and {runs.length - NAMED} more</li>}
      </ul>
      {done > 0 && (
        <progress max={runs.length} value={done} aria-label="Progress">
          {done} of {runs.length}
        </progress>
      )}
    </>
  )
}
