import type { Frame, Look, Publication, SentFile, Transcript, WebhookReply, WrongReply } from './records.ts'

/** A transcript that still grows. */
export interface OpenTranscript extends Transcript {
  readonly frames: Frame[]
  stream_id?: string
}

/** What clients notice during a soak. */
export class Recorder {
  readonly publications: Publication[] = []
  readonly deployed: string[] = []
  readonly webhooks: WebhookReply[] = []
  readonly files: SentFile[] = []
  readonly looks: Look[] = []
  readonly wrongReplies: WrongReply[] = []
  readonly cancelled: string[] = []
  readonly transcripts: OpenTranscript[] = []
  readonly incidents: string[] = []

  /** The findings that are certain before the checker runs. */
  get findings(): number {
    const stale = this.looks.filter(({ status }) => status === 404).length
    return stale + this.wrongReplies.length + this.incidents.length
  }

  records() {
    const { publications, deployed, webhooks, files, looks, wrongReplies } = this
    const { cancelled, transcripts, incidents } = this
    return { publications, deployed, webhooks, files, looks, wrongReplies, cancelled, transcripts, incidents }
  }

  follow(transcript: Omit<Transcript, 'frames'>): OpenTranscript {
    const opened = { ...transcript, frames: [] }
    this.transcripts.push(opened)
    return opened
  }
}
