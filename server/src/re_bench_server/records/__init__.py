"""What a state directory holds of sessions: transcripts, records, attempts, and how long they are kept."""
