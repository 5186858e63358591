import { lackText } from '../../access/permissions.ts'
import { useRepeat } from '../frame/repeat.ts'
import { refreshSession } from '../frame/session.ts'

interface Props {
  readonly type: string
  readonly action: string
}

/** The pause between two looks at what the session permits. */
const LOOK_MS = 5000

/** Shown instead of what the session may not see, until it may. */
export const Lacking = ({ type, action }: Props) => {
  useRepeat(() => void refreshSession(), LOOK_MS)
  return <p class="hint">{lackText(type, action)}.</p>
}
