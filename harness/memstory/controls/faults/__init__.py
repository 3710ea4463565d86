"""The oracle with one narrow fault each, taken from public bug reports. Fault stories are written against these."""

from __future__ import annotations

from collections.abc import Mapping

from memstory.controls.faults import (
    changes,
    correcting,
    durability,
    expiry,
    forgetting,
    names,
    owners,
    resisting,
    returning,
    searching,
    texts,
    writes,
)
from memstory.controls.mutants import MutantFactory, factory_of

__all__ = ["FAULTS"]

FAULTS: Mapping[str, type[MutantFactory]] = {
    mutant.fault_name: factory_of(mutant)
    for mutant in (
        *(owners.LeakyGet, owners.LeakySearch, owners.LeakyList, owners.LeakyUpdate, owners.LeakyDelete),
        *(owners.LeakySessions, owners.WipingOwners, owners.WipingSessions, names.FoldingOwners),
        *(names.TidyingOwners, names.CuttingOwners, names.PrefixOwners, owners.JoinedKeys, owners.SharedTexts),
        *(owners.CrowdedOwners, owners.MixedUsers, owners.LeakingBehind),
        *(names.TrimmingOwners, names.ComposingOwners, names.CountingOwners, names.PatternOwners),
        *(names.ReservedOwners, names.LooseDeletions),
        *(writes.LosingRaces, writes.RacingKeys, writes.MergingUpdates, writes.Lagging, writes.DoubledRetries),
        writes.Rebuilding,
        *(writes.CutBatches, writes.ReversedReceipts, writes.ConfusedTwins, writes.LikeKeys, writes.MixedMetadata),
        *(writes.RememberingQuestions, writes.MergingNumbers, writes.MergingNegations, writes.MergingOrders),
        *(writes.DeletingContradictions, writes.RetiringNeighbours),
        *(changes.StaleIndex, changes.StaleSearch, changes.Reissuing, changes.DroppingMetadata),
        *(changes.Resurrecting, changes.UnknownUpdates, changes.SpillingUpdates, changes.SpillingDeletions),
        *(changes.WearingOut, changes.FindingDeleted, changes.ListingDeleted, changes.GettingDeleted),
        *(changes.Tombstoned, changes.CrowdingDeleted, changes.LosingReach, changes.WipingOnMiss),
        changes.DeafWhenWiped,
        *(texts.Composing, texts.Trimming, texts.Flattening, texts.Cutting, texts.CuttingAtZero, texts.LosingEmoji),
        *(texts.LosingInvisible, texts.ReadingNumbers, texts.Escaping, texts.Unescaping, texts.FillingIn),
        *(texts.TextMetadata, texts.FloatMetadata, texts.FlatMetadata, texts.AsciiMetadata),
        *(searching.WorstFirst, searching.DistanceScores, searching.NanScores, searching.IgnoringMinScore),
        *(searching.DroppingLast, searching.OneTooMany, searching.RepeatingHits),
        *(searching.CappedSearch, searching.ShortOfTopK, searching.CappedList, searching.IgnoringLimit),
        *(searching.CappedAtThousand, changes.LostAmongDeleted),
        *(searching.IgnoringWhere, searching.AnyWhere, searching.LooseWhere, searching.FloatWhere),
        searching.FilteringLate,
        *(searching.AlienIds, searching.Flickering, searching.QueryLanguage, searching.ShortQueries),
        *(searching.BrokenByEmptiness, searching.BrokenByQuestions, searching.ByteWords, searching.CaseWords),
        *(durability.Renumbering, durability.CountingAnew, durability.RecyclingIds, durability.UnwrittenUpdates),
        *(durability.UnwrittenKeys, durability.UnwrittenDeletions, durability.WritingAtTheEnd),
        *(durability.RedatingAtOpening, durability.ReadingOnce, durability.KeepingDeletedByOthers),
        durability.TakingNoTurns,
        *(expiry.FindingExpired, expiry.ListingExpired, expiry.GettingExpired, expiry.ForgettingEarly),
        *(expiry.SpreadingTtl, expiry.UnwrittenTtl),
        *(forgetting.SparingShort, forgetting.SparingLong, forgetting.SparingSecond, forgetting.SparingOthers),
        *(forgetting.SparingEdited, forgetting.LooseAbout, forgetting.PrefixAbout, forgetting.LiteralAbout),
        *(forgetting.FuzzyAbout, forgetting.WipingAbout, forgetting.LeakyAbout, forgetting.Miscounting),
        *(forgetting.RememberingContext, forgetting.StaleExport, forgetting.QuotingLog, forgetting.LeavingFiles),
        *(forgetting.QuotingRetractions, forgetting.RebuildingDeleted, forgetting.PrefixSessions),
        *(forgetting.TellingThePast, forgetting.FindingByHash),
        *(returning.Returning, returning.ReturningByOthers, returning.ReturningReworded, returning.ReturningQuoted),
        *(returning.ReturningUnderKeys, returning.ReturningInBatches, returning.ReturningInSessions),
        *(returning.ReturningAfterRestarts, returning.ReturningAfterWiping, returning.ReturningAbout),
        *(returning.RefusingNew, returning.ForgettingForAll),
        *(correcting.OldestFirst, correcting.KnownValues, correcting.AppendingUpdates, correcting.UpdatingFirst),
        *(correcting.UpdatingTooMuch, correcting.InventingUpdates, correcting.PolarityBlind),
        *(correcting.FixedAfterMonth, correcting.CorrectingInSessions, correcting.IgnoringAsOf),
        *(correcting.SeeingTheFuture, correcting.BothAtOnce, correcting.MergingValues, correcting.KeyedOnce),
        *(resisting.CountingWords, resisting.TrustingAll, resisting.TrustingTools, resisting.TrustingAssistants),
        *(resisting.BelievingTags, resisting.DistrustingUsers, resisting.Obeying, resisting.SplittingLines),
        *(resisting.OperatorOwners, resisting.OperatorValues, resisting.QuotedValues, resisting.LookAlikeOwners),
        *(resisting.LookAlikeKeys, resisting.Echoing, resisting.Unsealed, resisting.SealingLength),
        *(resisting.IgnoringRoles, resisting.SealingLetters, resisting.ReadingHalves, resisting.ObeyingDisguised),
        *(durability.LeavingLocks, durability.TrustingIndex, durability.CrowdedOut, durability.LosingUnread),
        durability.MixingEmbedders,
        *(owners.KeepingShares, owners.SharingWithAll, owners.SharingCopies, returning.ReturningByRestoring),
        forgetting.OneScript,
    )
}
"""By the name behind `control:`."""
