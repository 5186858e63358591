import { Time } from '../../parts/texts.tsx'
import type { ReadModel } from './readModel.ts'

interface Props {
  readonly name: string
  readonly of: NonNullable<ReadModel['rebuild']>
  /** The most events that the rebuild was behind: its whole way. */
  readonly most: number
}

/** How far a rebuild is, or how it ended. */
export const Progress = ({ name, of: { state, behind, ended_at, differences, error }, most }: Props) => {
  if (state === 'failed') return <span class="status bad">Failed: {error}</span>
  if (ended_at)
    return (
      <span class="status good">
        Done <Time at={ended_at} />
        {differences !== null && `, ${differences} documents differed`}
      </span>
    )
  const left = behind === null ? '' : `, ${behind.toLocaleString('en')} events left`
  return (
    <>
      {state}
      {left}{' '}
      {behind === null || most === 0 ? (
        <progress aria-label={`Rebuild of ${name}`} />
      ) : (
        <progress max={most} value={most - behind} aria-label={`Rebuild of ${name}`} />
      )}
    </>
  )
}
