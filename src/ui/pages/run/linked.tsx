import { linkTo } from '../../frame/router.ts'

interface Props {
  readonly text: string
  /** The run of the page, which needs no link. */
  readonly own: string
  /** The event of the run. */
  readonly event_id: string | null
}

const ID = /\b((?:run )?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b/

/** A sentence of the service whose ids of runs, and that of the event, are links. */
export const Linked = ({ text, own, event_id }: Props) => (
  <>
    {text.split(ID).map((part, index) => {
      const id = part.replace(/^run /, '')
      const isId = index % 2 === 1
      if (isId && id === event_id)
        return (
          <a key={index} href={linkTo('/events', { event: id })}>
            {id}
          </a>
        )
      if (!isId || id === part || id === own) return part
      return (
        <span key={index}>
          run <a href={linkTo(`/runs/${id}`)}>{id}</a>
        </span>
      )
    })}
  </>
)
