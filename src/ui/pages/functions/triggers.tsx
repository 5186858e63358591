import { Name } from '../../parts/texts.tsx'
import type { ProjectFunction } from '../../../client/index.ts'
import { linkTo } from '../../frame/router.ts'

/** The reference of a function. */
export const refOf = ({ ns, var: name }: { readonly ns: string; readonly var: string }): string =>
  `${ns}/${name}`

/** What starts a function, besides calls. */
export const Triggers = ({
  of: { on_event, schedule, webhook, mcp },
}: {
  readonly of: Pick<ProjectFunction, 'on_event' | 'schedule' | 'webhook' | 'mcp'>
}) => {
  const isCalled = on_event === undefined && !schedule && !webhook && !mcp
  return (
    <ul class="triggers">
      {on_event !== undefined && (
        <li>
          Event{' '}
          <a href={linkTo('/events', { event_type: on_event })}>
            <Name of={on_event} />
          </a>
        </li>
      )}
      {schedule && (
        <li>
          Schedule <code>{schedule.cron}</code> {schedule.timezone}
        </li>
      )}
      {webhook && (
        <li>
          Webhook{' '}
          <code>
            {webhook.method} <Name of={webhook.service + webhook.path} />
          </code>
        </li>
      )}
      {mcp && <li title={mcp.description}>Tool of {mcp.service}</li>}
      {isCalled && <li>Calls</li>}
    </ul>
  )
}
